//! A model in the memory of its user: weights packed, everything else as the operations read it.

use super::checkpoint::{Checkpoint, Part, Shape};
use super::tokenizer::{self, Tokenizer, TokenizerSlots};
use crate::error::Error;
use crate::host::Host;
use crate::ops::LayerWeights;
use crate::parallel::ParallelFor;
use crate::scratch::{Plan, Slot};
use crate::tensor::Tensor;
use core::alloc::Layout;
use core::fmt;
use tilekern_kernels::element::Element;
use tilekern_kernels::pack::packed_bytes;

/// How the last product, from the residual stream to the logits, is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum HeadKind {
    /// Weights and activations in int8, as in the layers.
    #[default]
    Int8,
    /// Weights and activations as they are, not quantised: a matrix of its own takes up to four times the memory, and none where the
    /// classifier is the embedding.
    Float,
}

/// What a model is loaded with.
#[derive(Clone, Copy, Default)]
pub struct ModelOptions<'a> {
    /// The last product.
    pub head: HeadKind,
    /// A llama2.c `tokenizer.bin`: for checkpoints that carry none, or instead of the one that they carry.
    pub tokenizer: Option<&'a [u8]>,
}

/// Of the tokenizer the number of bytes.
impl fmt::Debug for ModelOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.tokenizer.map(<[u8]>::len);
        f.debug_struct("ModelOptions").field("head", &self.head).field("tokenizer", &bytes).finish()
    }
}

/// A LLaMA model with int8 weights, one scale for each output channel. It is read-only after loading and may serve any number of
/// [`Decoding`](super::Decoding)s, in any number of threads.
///
/// * Files: `.tkm`, and llama2.c checkpoints of versions 0 and 1; the file and the tokenizer may go after the load.
/// * `T`, f32, f16 or bf16: the activations, the embedding (of a `.tkm` file int8 rows with a scale each, of llama2.c floats) and the
///   norms.
/// * Memory: the caller's, [`Model::layout`] says how much. Nothing allocates.
/// * Errors: 161002 with the field that is wrong, for any file that is not exactly a model, a width beyond 65 536, or a number of
///   the embedding, the norms or a head of floats that is infinite as `T`; -1 for too little memory.
///
/// ```no_run
/// use tilekern::{Scratch, llama::{Model, ModelOptions}};
///
/// let file = std::fs::read("stories.tkm")?;
/// let options = ModelOptions::default();
/// let mut memory = Scratch::new(Model::<f32>::layout(&options, &file)?);
/// let model = Model::<f32>::load(&options, &file, &mut memory)?;
/// let mut ids = [0; 64];
/// let count = model.encode("Once upon a time".as_bytes(), &mut ids)?;
/// assert!(count <= 64);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Model<'m, T = f32> {
    shape: Shape,
    eps: f32,
    theta: f32,
    embedding: &'m [T],
    norms: &'m [T],
    packed: &'m [i8],
    scales: &'m [f32],
    head: Head<'m, T>,
    tokenizer: Option<Tokenizer<'m>>,
}

/// Without the weights.
impl<T> fmt::Debug for Model<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = match self.head {
            Head::Int8(_) => HeadKind::Int8,
            Head::Float(_) => HeadKind::Float,
        };
        f.debug_struct("Model").field("shape", &self.shape).field("head", &head).finish_non_exhaustive()
    }
}

/// The last product's weights.
#[derive(Clone, Copy)]
pub(crate) enum Head<'m, T> {
    Int8(Weight<'m>),
    /// `[vocab][dim]`
    Float(&'m [T]),
}

/// A packed weight and the scales of its outputs.
#[derive(Clone, Copy)]
pub(crate) struct Weight<'m> {
    pub packed: &'m [i8],
    pub scale: &'m [f32],
}

/// The matrices of a layer, as they lie in memory.
const MATRICES: [Part; 7] = [Part::Wq, Part::Wk, Part::Wv, Part::Wo, Part::W1, Part::W2, Part::W3];

/// Where everything will lie.
struct Slots<T> {
    embedding: Slot<T>,
    norms: Slot<T>,
    packed: Slot<i8>,
    scales: Slot<f32>,
    head: HeadSlots<T>,
    tokenizer: Option<TokenizerSlots>,
}

enum HeadSlots<T> {
    Int8(Slot<i8>, Slot<f32>),
    Float(Slot<T>),
    /// The embedding.
    Shared,
}

fn too_large() -> Error {
    Error::invalid("file", "sizes that fit in memory", "an overflow")
}

/// Packed bytes and outputs of one layer.
fn layer_sizes(shape: &Shape) -> Option<(usize, usize)> {
    MATRICES.iter().try_fold((0usize, 0usize), |(bytes, scales), part| {
        let (outputs, inputs) = part.sizes(shape);
        Some((bytes.checked_add(packed_bytes(1, inputs, outputs)?)?, scales.checked_add(outputs)?))
    })
}

fn plan<T: Element>(file: &Checkpoint<'_>, options: &ModelOptions<'_>) -> Result<(Plan, Slots<T>), Error> {
    let s = &file.shape;
    let times = |n: usize| s.layers.checked_mul(n).ok_or_else(too_large);
    let table = s.vocab.checked_mul(s.dim).ok_or_else(too_large)?;
    let (bytes, outputs) = layer_sizes(s).ok_or_else(too_large)?;
    let mut plan = Plan::new();
    let embedding = plan.slot(table)?;
    let norms = plan.slot(times(2 * s.dim)?.checked_add(s.dim).ok_or_else(too_large)?)?;
    let packed = plan.slot(times(bytes)?)?;
    let scales = plan.slot(times(outputs)?)?;
    let head = match options.head {
        HeadKind::Int8 => {
            HeadSlots::Int8(plan.slot(packed_bytes(1, s.dim, s.vocab).ok_or_else(too_large)?)?, plan.slot(s.vocab)?)
        }
        HeadKind::Float if file.shared => HeadSlots::Shared,
        HeadKind::Float => HeadSlots::Float(plan.slot(table)?),
    };
    // The file's own has to be one, though another takes its place.
    file.tokenizer.map(|bytes| tokenizer::check(bytes, s.vocab)).transpose()?;
    let tokenizer = options.tokenizer.or(file.tokenizer);
    let tokenizer = tokenizer.map(|bytes| tokenizer::plan(&mut plan, bytes, s.vocab)).transpose()?;
    Ok((plan, Slots { embedding, norms, packed, scales, head, tokenizer }))
}

impl<'m, T: Element> Model<'m, T> {
    /// How much memory the model in `file` needs. Checks the header, the length and the tokenizer.
    pub fn layout(options: &ModelOptions<'_>, file: &[u8]) -> Result<Layout, Error> {
        Ok(plan::<T>(&Checkpoint::open(file)?, options)?.0.layout())
    }

    /// Checks all of `file` and lays it out in `memory`.
    pub fn load(options: &ModelOptions<'_>, file: &[u8], memory: &'m mut [u8]) -> Result<Self, Error> {
        let checkpoint = Checkpoint::open(file)?;
        let (plan, slots) = plan::<T>(&checkpoint, options)?;
        let space = plan.carve(memory)?;
        checkpoint.validate::<T>(file, options.head == HeadKind::Float)?;
        let shape = checkpoint.shape;

        let table = |part: &super::checkpoint::Matrix<'_>, slot| {
            let table: &'m mut [T] = space.take(slot);
            part.narrow(table);
            &*table
        };
        let embedding = table(&checkpoint.matrix(Part::Embedding, 0), slots.embedding);
        let norms = space.take(slots.norms);
        let kinds = (0..shape.layers).flat_map(|layer| [(Part::AttentionNorm, layer), (Part::FfnNorm, layer)]);
        for (row, (part, layer)) in norms.chunks_exact_mut(shape.dim).zip(kinds.chain([(Part::FinalNorm, 0)])) {
            let stored = checkpoint.vector(part, layer);
            row.iter_mut().enumerate().for_each(|(i, x)| *x = T::narrow(stored.get(i)));
        }
        let (packed, scales) = (space.take(slots.packed), space.take(slots.scales));
        let (mut free, mut free_scales) = (&mut *packed, &mut *scales);
        for layer in 0..shape.layers {
            for part in MATRICES {
                let matrix = checkpoint.matrix(part, layer);
                let (bytes, outputs) = matrix.packed();
                let (to, rest) = core::mem::take(&mut free).split_at_mut(bytes);
                let (scale, rest_scales) = core::mem::take(&mut free_scales).split_at_mut(outputs);
                matrix.pack(to, scale);
                (free, free_scales) = (rest, rest_scales);
            }
        }
        let classifier = checkpoint.classifier();
        let head = match slots.head {
            HeadSlots::Int8(packed, scale) => {
                let (packed, scale) = (space.take(packed), space.take(scale));
                classifier.pack(packed, scale);
                Head::Int8(Weight { packed, scale })
            }
            HeadSlots::Float(slot) => Head::Float(table(&classifier, slot)),
            HeadSlots::Shared => Head::Float(embedding),
        };
        let tokenizer = match (slots.tokenizer, options.tokenizer.or(checkpoint.tokenizer)) {
            (Some(slots), Some(file)) => Some(Tokenizer::load(&space, slots, file)?),
            _ => None,
        };
        let (eps, theta) = (checkpoint.eps, checkpoint.theta);
        Ok(Model { shape, eps, theta, embedding, norms, packed, scales, head, tokenizer })
    }
}

impl<'m, T> Model<'m, T> {
    /// The sizes of the model.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The ids of `text`, without one for the beginning of a sequence. Returns how many there are; they are written if `ids` has room
    /// for all of them, and else none is. A run of more than 1024 characters that could all be joined is cut there.
    pub fn encode(&self, text: &[u8], ids: &mut [i32]) -> Result<usize, Error> {
        Ok(self.tokenizer.as_ref().ok_or_else(tokenizer::none)?.encode(text, ids))
    }

    /// The bytes of token `id` after token `previous`: the first token of a sequence, after 1, loses a leading blank. Not
    /// always whole characters: a character may be several tokens.
    pub fn token_text(&self, previous: i32, id: i32) -> Result<&'m [u8], Error> {
        self.tokenizer.as_ref().ok_or_else(tokenizer::none)?.text(previous, id)
    }

    /// The constant inside RMSNorm.
    pub(crate) fn eps(&self) -> f64 {
        f64::from(self.eps)
    }

    /// The base of the rotary frequencies.
    pub(crate) fn theta(&self) -> f64 {
        f64::from(self.theta)
    }

    /// `[vocab][dim]`
    pub(crate) fn embedding(&self) -> &'m [T] {
        self.embedding
    }

    pub(crate) fn final_norm(&self) -> &'m [T] {
        &self.norms[2 * self.shape.layers * self.shape.dim..]
    }

    pub(crate) fn head(&self) -> &Head<'m, T> {
        &self.head
    }

    /// The weights of a layer.
    pub(crate) fn layer<'a, P: ParallelFor>(&'a self, layer: usize) -> Result<LayerWeights<'a, Host<P>, T>, Error> {
        let dim = self.shape.dim;
        let (bytes, outputs) = (self.packed.len() / self.shape.layers, self.scales.len() / self.shape.layers);
        let mut packed = &self.packed[layer * bytes..][..bytes];
        let mut scales = &self.scales[layer * outputs..][..outputs];
        let mut next = |part: Part| {
            let (n, k) = part.sizes(&self.shape);
            let (weight, scale);
            (weight, packed) = packed.split_at(packed_bytes(1, k, n).unwrap_or(0));
            (scale, scales) = scales.split_at(n);
            Ok::<_, Error>((Tensor::new([weight.len()], weight)?, Tensor::new([n], scale)?))
        };
        let [wq, wk, wv, wo, w1, w2, w3] = MATRICES.map(&mut next);
        let ((wq, wq_scale), (wk, wk_scale), (wv, wv_scale), (wo, wo_scale)) = (wq?, wk?, wv?, wo?);
        let ((w1, w1_scale), (w2, w2_scale), (w3, w3_scale)) = (w1?, w2?, w3?);
        let (attention_norm, ffn_norm) = self.norms[2 * layer * dim..][..2 * dim].split_at(dim);
        let (attention_norm, ffn_norm) = (Tensor::new([dim], attention_norm)?, Tensor::new([dim], ffn_norm)?);
        Ok(LayerWeights {
            attention_norm,
            wq,
            wq_scale,
            wk,
            wk_scale,
            wv,
            wv_scale,
            wo,
            wo_scale,
            ffn_norm,
            w1,
            w1_scale,
            w3,
            w3_scale,
            w2,
            w2_scale,
        })
    }
}
