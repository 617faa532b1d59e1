//! The decoding loop: a batch of rows, each with its prompt, its sampling and its end.
//!
//! Every row has one pending token, the last of its prompt at first. Prompts run through the layers row by row, 64 tokens at a
//! time, without the pending one; a step runs the pending tokens of all rows together, and what they give is pending next. A row
//! that has ended stays in the batch as token 0 at position 0, where attention costs nothing; its caches are dead.

mod forward;

use super::model::Model;
use super::plan::{DecodingConfig, Sizes, plan, rope, with_workspace, workspace};
use super::sampling::{RowSampling, Sampling};
use crate::backend::Run;
use crate::error::{Error, Status, Value};
use crate::host::Host;
use crate::ops::check;
use crate::parallel::ParallelFor;
use crate::tensor::{Describe, Tensor, TensorMut};
use core::alloc::Layout;
use core::fmt;
use core::ops::ControlFlow;
use tilekern_kernels::element::Element;

/// A batch of rows that a model continues. `T` are the model's activations, `K` is what the key and value caches hold: f32, f16 or
/// bf16.
///
/// * A row runs from its prompt to `end_id`, to `max_new` tokens, or to the end of the model's context. A row that has ended, or has
///   no prompt yet, gives `end_id`; [`Decoding::replace_row`] puts a new prompt into it while the others go on.
/// * What a row gives depends on its prompt and its [`RowSampling`] alone, bit for bit: not on the batch, the threads or the
///   instruction set.
/// * Memory: the caller's, aligned to 64 bytes; [`Decoding::layout`] says how much, for pools of up to as many workers as its host
///   has. Nothing allocates.
/// * Errors: 561002 a vocabulary above 2^20; 161002 a `batch`, `max_prompt` or `max_new` of 0, an `end_id` that is no token, a prompt that
///   is empty, longer than `max_prompt` or than the context, an id outside the vocabulary, a shape that does not fit; -1 too little
///   memory, or a pool of more workers. A call that fails so has changed nothing.
///
/// ```no_run
/// use tilekern::llama::{Decoding, DecodingConfig, Model, ModelOptions, RowSampling};
/// use tilekern::{Host, Scratch, Tensor};
///
/// let (host, options, file) = (Host::new(), ModelOptions::default(), std::fs::read("stories.tkm")?);
/// let mut memory = Scratch::new(Model::<f32>::layout(&options, &file)?);
/// let model = Model::<f32>::load(&options, &file, &mut memory)?;
///
/// let config = DecodingConfig::new(1, 100, 2);
/// let mut memory = Scratch::new(Decoding::<f32, f32>::layout(&host, &config, &model)?);
/// let mut decoding = Decoding::<f32, f32>::new(&host, &config, &model, &mut memory)?;
/// decoding.set_row(0, &RowSampling { temperature: 0.0, ..Default::default() })?;
/// decoding.prompt(&host, Tensor::new([1, 1], &[1])?, Tensor::new([1], &[1])?)?;
/// let mut previous = 1;
/// decoding.generate(&host, |_row, id| {
///     print!("{}", String::from_utf8_lossy(model.token_text(previous, id).unwrap_or(b"")));
///     previous = id;
///     std::ops::ControlFlow::Continue(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Decoding<'d, T = f32, K = f32> {
    model: &'d Model<'d, T>,
    sizes: Sizes,
    end_id: i32,
    /// As many as the workspace is known to serve.
    workers: usize,
    keys: &'d mut [K],
    values: &'d mut [K],
    freqs: &'d [f32],
    hidden: [&'d mut [T]; 2],
    quantised: &'d mut [i8],
    scale: &'d mut [f32],
    logits: &'d mut [f32],
    /// The token of each row that runs next.
    pending: &'d mut [i32],
    /// Its position.
    position: &'d mut [i64],
    /// How many tokens each row has generated.
    count: &'d mut [usize],
    /// 1 for rows that have a prompt and have not ended.
    active: &'d mut [u8],
    /// 1 for rows whose logits are those of the last step.
    stepped: &'d mut [u8],
    /// `[batch][most_new]`
    generated: &'d mut [i32],
    sampling: Sampling<'d>,
    scratch: &'d mut [u8],
}

/// Without the caches and the state of the rows.
impl<T, K> fmt::Debug for Decoding<'_, T, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Decoding").field("sizes", &self.sizes).field("end_id", &self.end_id).finish_non_exhaustive()
    }
}

impl<'d, T: Element, K: Element> Decoding<'d, T, K> {
    /// How much memory a decoding needs that runs on hosts with up to as many workers as this one.
    pub fn layout<P: ParallelFor>(host: &Host<P>, config: &DecodingConfig, model: &Model<'_, T>) -> Result<Layout, Error> {
        let sizes = Sizes::new(config, model)?;
        Ok(with_workspace::<T, K, P>(plan::<T, K>(&sizes)?.0, host, &sizes, model)?.layout())
    }

    /// A decoding whose rows have no prompts yet, and the default sampling. Other hosts may run it too, with as many workers as the
    /// memory has room for.
    pub fn new<P: ParallelFor>(
        host: &Host<P>,
        config: &DecodingConfig,
        model: &'d Model<'d, T>,
        memory: &'d mut [u8],
    ) -> Result<Self, Error> {
        let sizes = Sizes::new(config, model)?;
        let (plan, slots) = plan::<T, K>(&sizes)?;
        with_workspace::<T, K, P>(plan, host, &sizes, model)?.carve(memory)?;
        let (state, scratch) = memory.split_at_mut(plan.bytes());
        let space = plan.carve(state)?;
        let freqs = space.take(slots.freqs);
        let table = rope(model.theta(), TensorMut::new([sizes.length, sizes.head_dim], freqs)?);
        host.run(table, scratch)?;
        let mut decoding = Decoding {
            model,
            sizes,
            end_id: config.end_id,
            workers: host.pool().workers(),
            keys: space.take(slots.keys),
            values: space.take(slots.values),
            freqs,
            hidden: slots.hidden.map(|slot| space.take(slot)),
            quantised: space.take(slots.quantised),
            scale: space.take(slots.scale),
            logits: space.take(slots.logits),
            pending: space.take(slots.pending),
            position: space.take(slots.position),
            count: space.take(slots.count),
            active: space.take(slots.active),
            stepped: space.take(slots.stepped),
            generated: space.take(slots.generated),
            sampling: Sampling::new(&space, slots.sampling),
            scratch,
        };
        decoding.reset();
        Ok(decoding)
    }

    /// Takes all prompts away; the sampling of the rows stays.
    pub fn reset(&mut self) {
        (0..self.sizes.batch).for_each(|row| self.clear(row));
    }

    fn clear(&mut self, row: usize) {
        (self.pending[row], self.position[row], self.count[row]) = (0, 0, 0);
        (self.active[row], self.stepped[row]) = (0, 0);
    }

    fn check_row(&self, row: usize) -> Result<(), Error> {
        check::attribute("row", row < self.sizes.batch, Value::Range { least: 0, most: self.sizes.batch as i64 - 1 }, row)
    }

    /// The workspace is enough for the workers, of which more may come than came before.
    fn check_host<P: ParallelFor>(&mut self, host: &Host<P>) -> Result<(), Error> {
        let workers = host.pool().workers();
        if workers > self.workers {
            // Of very many it may overflow.
            if workspace::<T, K, P>(host, self.model, &self.sizes).map_or(true, |bytes| bytes > self.scratch.len()) {
                return Err(Error::new(Status::Workspace, "workers", "as many as the memory has room for", workers));
            }
            self.workers = workers;
        }
        Ok(())
    }

    /// Sets how a row chooses its tokens, from the next one on.
    pub fn set_row(&mut self, row: usize, sampling: &RowSampling) -> Result<(), Error> {
        self.check_row(row)?;
        self.sampling.set(row, sampling)
    }

    /// Gives every row its prompt: of `tokens` `[B,P]` row b has the first `lengths[b]`, 1 to P and at most `max_prompt`. The
    /// beginning of the sequence is the caller's to put there.
    pub fn prompt<P: ParallelFor>(
        &mut self,
        host: &Host<P>,
        tokens: Tensor<'_, i32>,
        lengths: Tensor<'_, i32>,
    ) -> Result<(), Error> {
        self.check_host(host)?;
        let batch = self.sizes.batch;
        let [rows, columns] = check::sizes("tokens", &tokens)?;
        check::attribute("tokens", rows == batch, batch, rows)?;
        check::shape("lengths", &lengths, &[batch])?;
        check::present(&[("tokens", tokens.location()), ("lengths", lengths.location())])?;
        let length = |row| lengths.get(row) as usize;
        for row in 0..batch {
            check::within("lengths", 1, columns as i64, lengths.get(row).into())?;
            self.check_prompt(length(row), |i| tokens.get(row * columns + i))?;
        }
        (0..batch).try_for_each(|row| self.prefill(host, row, length(row), |i| tokens.get(row * columns + i)))
    }

    /// Gives one row a new prompt, `[P]`, and with it a new beginning; the other rows do not notice.
    pub fn replace_row<P: ParallelFor>(&mut self, host: &Host<P>, row: usize, tokens: Tensor<'_, i32>) -> Result<(), Error> {
        self.check_host(host)?;
        self.check_row(row)?;
        let length = tokens.dims().elements();
        check::shape("tokens", &tokens, &[length])?;
        check::present(&[("tokens", tokens.location())])?;
        self.check_prompt(length, |i| tokens.get(i))?;
        self.prefill(host, row, length, |i| tokens.get(i))
    }

    fn check_prompt(&self, length: usize, token: impl Fn(usize) -> i32) -> Result<(), Error> {
        // Both limits of a prompt; the caches are at least as long.
        let most = self.sizes.max_prompt.min(self.model.shape().context);
        check::attribute(
            "tokens",
            (1..=most).contains(&length),
            Value::Range { least: 1, most: most as i64 },
            Value::shape(&[length]),
        )?;
        (0..length).try_for_each(|i| check::id("tokens", token(i), self.sizes.vocab))
    }

    /// Runs all tokens of a prompt but the last through the layers.
    fn prefill<P: ParallelFor>(
        &mut self,
        host: &Host<P>,
        row: usize,
        length: usize,
        token: impl Fn(usize) -> i32,
    ) -> Result<(), Error> {
        self.clear(row);
        let before = length - 1;
        for from in (0..before).step_by(self.sizes.chunk) {
            let tokens = self.sizes.chunk.min(before - from);
            for i in 0..tokens {
                self.embed(i, token(from + i));
            }
            self.position[row] = from as i64;
            self.fill(host, row, tokens)?;
        }
        (self.pending[row], self.position[row], self.active[row]) = (token(before), before as i64, 1);
        Ok(())
    }

    /// Gives every row its next token, `[B]`; rows that have ended give `end_id`. Where a model's numbers overflow on the way, so
    /// that no score is a number, the token is 0: [`Decoding::logits`] tells.
    pub fn step<P: ParallelFor>(&mut self, host: &Host<P>, ids: TensorMut<'_, i32>) -> Result<(), Error> {
        self.step_with(host, ids, |_, _| ())
    }

    /// A step with logits processors: a grammar, penalties, biases. `edit` gets each row that has not ended and its logits as the model
    /// gave them, `[V]`, in the order of rows; the row chooses from what it leaves there, by its [`RowSampling`]. -inf and NaN bar a
    /// token; a row of nothing else takes token 0.
    ///
    /// ```
    /// use tilekern::llama::Decoding;
    /// use tilekern::{Error, Host, TensorMut};
    ///
    /// /// A step in which no row may end before it has `least` tokens.
    /// fn step(decoding: &mut Decoding, host: &Host, ids: &mut [i32], done: &[usize], least: usize) -> Result<(), Error> {
    ///     const END: usize = 2;
    ///     decoding.step_with(host, TensorMut::new([ids.len()], ids)?, |row, logits| {
    ///         if done[row] < least {
    ///             logits[END] = f32::NEG_INFINITY;
    ///         }
    ///     })
    /// }
    /// ```
    pub fn step_with<P: ParallelFor>(
        &mut self,
        host: &Host<P>,
        ids: TensorMut<'_, i32>,
        edit: impl FnMut(usize, &mut [f32]),
    ) -> Result<(), Error> {
        check::shape("ids", &ids, &[self.sizes.batch])?;
        check::memory(true, &[("ids", ids.location())], &[])?;
        self.check_host(host)?;
        let (mut ids, end_id) = (ids, self.end_id);
        let mut ids = ids.row_mut(0);
        (0..self.sizes.batch).for_each(|row| ids.set(row, end_id));
        self.advance(host, edit, |row, id| ids.set(row, id))
    }

    /// Steps until every row has ended or `token` breaks. It gets every new token with its row, the end token too; also those that the
    /// step in which it breaks gave the rows behind.
    pub fn generate<P: ParallelFor>(
        &mut self,
        host: &Host<P>,
        mut token: impl FnMut(usize, i32) -> ControlFlow<()>,
    ) -> Result<(), Error> {
        let mut flow = ControlFlow::Continue(());
        while flow.is_continue() && !self.finished() {
            let token = |row, id| {
                if token(row, id).is_break() {
                    flow = ControlFlow::Break(());
                }
            };
            self.advance(host, |_, _| (), token)?;
        }
        Ok(())
    }

    /// One step; `edit` gets the logits of the rows that had not ended, and `token` their new tokens.
    fn advance<P: ParallelFor>(
        &mut self,
        host: &Host<P>,
        mut edit: impl FnMut(usize, &mut [f32]),
        mut token: impl FnMut(usize, i32),
    ) -> Result<(), Error> {
        self.check_host(host)?;
        self.stepped.fill(0);
        if self.finished() {
            return Ok(());
        }
        let s = self.sizes;
        for row in 0..s.batch {
            self.embed(row, self.pending[row]);
        }
        self.forward(host)?;
        for row in (0..s.batch).filter(|&row| self.active[row] != 0) {
            edit(row, &mut self.logits[row * s.vocab..][..s.vocab]);
        }
        self.sampling.choose(host, self.logits, self.count, self.active, self.scratch)?;
        self.stepped.copy_from_slice(self.active);
        for row in 0..s.batch {
            if self.active[row] == 0 {
                continue;
            }
            let id = self.sampling.chosen[row] as i32;
            self.generated[row * s.most_new + self.count[row]] = id;
            self.pending[row] = id;
            self.position[row] += 1;
            self.count[row] += 1;
            let full = self.count[row] == s.max_new || self.position[row] as usize == s.length;
            if id == self.end_id || full {
                self.stop(row);
            }
            token(row, id);
        }
        Ok(())
    }

    /// Ends a row: a text to stop at was found, or nobody waits for it any more.
    pub fn stop_row(&mut self, row: usize) -> Result<(), Error> {
        self.check_row(row)?;
        self.stop(row);
        Ok(())
    }

    fn stop(&mut self, row: usize) {
        (self.pending[row], self.position[row], self.active[row]) = (0, 0, 0);
    }

    /// The logits that a row's last token was chosen from: of a greedy row as the model, or who edited them, gave them, of another as it
    /// drew from them, that is divided by the temperature, and -inf where a `top_k` above 1024 cut. They stay until the next step or a
    /// new prompt; a row that took no part in the last step, since it has ended or has no prompt, has none: [`Status::Invalid`].
    pub fn logits(&self, row: usize) -> Result<&[f32], Error> {
        self.check_row(row)?;
        check::attribute("row", self.stepped[row] != 0, "a row that took part in the last step", row)?;
        Ok(&self.logits[row * self.sizes.vocab..][..self.sizes.vocab])
    }

    /// Whether no row has a token to come: each has ended or has no prompt.
    pub fn finished(&self) -> bool {
        !self.active.contains(&1)
    }

    /// What the rows have generated, the end token included: `ids` `[B,max_new]`, -1 behind the end; `lengths` `[B]`.
    pub fn output(&self, ids: TensorMut<'_, i32>, lengths: TensorMut<'_, i32>) -> Result<(), Error> {
        let (batch, columns, pitch) = (self.sizes.batch, self.sizes.max_new, self.sizes.most_new);
        check::shape("ids", &ids, &[batch, columns])?;
        check::shape("lengths", &lengths, &[batch])?;
        check::memory(true, &[("ids", ids.location()), ("lengths", lengths.location())], &[])?;
        let (mut ids, mut lengths) = (ids, lengths);
        for row in 0..batch {
            let count = self.count[row];
            let mut to = ids.row_mut(row);
            (0..columns).for_each(|i| to.set(i, if i < count { self.generated[row * pitch + i] } else { -1 }));
            lengths.row_mut(0).set(row, count as i32);
        }
        Ok(())
    }
}
