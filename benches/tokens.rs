//! A token of models of some size: against a stream over as many bytes as its weights have, and by several threads against one.
//!
//! `cargo bench --bench tokens [-- [--isa NAME] [--threads COUNT]]`. Medians of steps that take turns, greedy, short sequences. The
//! threads, each on a core of its own, are called from outside their pool, and from inside. Without `--bench`, as `cargo test` runs
//! it, a small model once.

mod arguments;
mod cores;
mod floors;
mod llama2c;
mod median;

use arguments::Arguments;
use floors::{seconds, stream};
use llama2c::llama2c;
use median::median;
use tilekern::kernels::dispatch::Level;
use tilekern::llama::{Decoding, DecodingConfig, Model, ModelOptions, RowSampling};
use tilekern::{Error, Host, Isa, ParallelFor, Scratch, Serial, Tensor, TensorMut};

/// Width, inner width, layers, and tokens of the vocabulary.
type Size = [usize; 4];
const SIZES: [Size; 3] = [[1024, 2816, 8, 32_000], [2048, 5632, 4, 32_000], [4096, 11_008, 2, 32_000]];
const SMALL: [Size; 1] = [[64, 128, 1, 300]];

/// Tokens of a sequence.
const STEPS: usize = 100;

/// Bytes of the weights that a token reads.
fn bytes([dim, hidden, layers, vocab]: Size) -> usize {
    layers * (4 * dim * dim + 3 * dim * hidden) + vocab * dim
}

/// The seconds of a step of `batch` rows.
struct Steps<'a> {
    decoding: Decoding<'a>,
    ids: Vec<i32>,
    times: Vec<f64>,
}

impl<'a> Steps<'a> {
    fn new<P: ParallelFor>(
        host: &Host<P>,
        model: &'a Model<'_>,
        batch: usize,
        memory: &'a mut Scratch,
    ) -> Result<Steps<'a>, Error> {
        let config = DecodingConfig { batch, ..DecodingConfig::new(1, STEPS, -1) };
        *memory = Scratch::new(Decoding::<f32>::layout(host, &config, model)?);
        let mut decoding = Decoding::new(host, &config, model, memory)?;
        let greedy = RowSampling { temperature: 0.0, ..Default::default() };
        (0..batch).try_for_each(|row| decoding.set_row(row, &greedy))?;
        decoding.prompt(host, Tensor::new([batch, 1], &vec![1; batch])?, Tensor::new([batch], &vec![1; batch])?)?;
        Ok(Steps { decoding, ids: vec![0; batch], times: vec![] })
    }

    fn step<P: ParallelFor>(&mut self, host: &Host<P>) {
        let ids = TensorMut::new([self.ids.len()], &mut self.ids).unwrap();
        self.times.push(seconds(|| self.decoding.step(host, ids).unwrap()));
    }
}

fn print(isa: Isa, size: Size, batch: usize, model: &Model<'_>, threads: usize, rounds: usize) -> Result<(), Error> {
    let (one, pool, weights) = (Host::with(isa, Serial)?, cores::pool(threads), vec![1; bytes(size)]);
    let many = Host::with(isa, &pool)?;
    let [mut a, mut b, mut c] = core::array::from_fn(|_| Scratch::default());
    let mut alone = Steps::new(&one, model, batch, &mut a)?;
    let mut outside = Steps::new(&many, model, batch, &mut b)?;
    let mut inside = Steps::new(&many, model, batch, &mut c)?;
    let mut floors = vec![];
    for _ in 0..rounds {
        floors.push(weights.len() as f64 / stream(Level::new(isa).unwrap(), &weights));
        for _ in 0..2 {
            alone.step(&one);
            outside.step(&many);
            pool.install(|| inside.step(&many));
            assert!(alone.ids == outside.ids && alone.ids == inside.ids);
        }
    }
    let floor = median(&mut floors);
    let [alone, outside, inside] = [alone, outside, inside].map(|mut steps| median(&mut steps.times));
    println!(
        "  {size:?}, {:4} MB, {batch:2} rows {:8.0} us, {:4.0} % of stream {:.1}; {threads} threads {:.2}, inside {:.2} times as fast",
        bytes(size) / 1_000_000,
        1e6 * alone,
        100.0 * floor / alone,
        1e-9 * weights.len() as f64 / floor,
        alone / outside,
        alone / inside,
    );
    Ok(())
}

fn main() -> Result<(), Error> {
    let arguments = Arguments::new();
    let (sizes, rounds) = if arguments.full() { (&SIZES[..], 20) } else { (&SMALL[..], 1) };
    let isa = arguments.isas().filter(|isa| isa.is_available()).last().expect("an instruction set of this processor");
    println!("{}", isa.name());
    for &size in sizes {
        let (file, options) = (llama2c(size), ModelOptions::default());
        let mut memory = Scratch::new(Model::<f32>::layout(&options, &file)?);
        let model = Model::load(&options, &file, &mut memory)?;
        drop(file);
        for batch in [1, 16] {
            print(isa, size, batch, &model, arguments.number("--threads").unwrap_or(2), rounds)?;
        }
    }
    Ok(())
}
