//! Whatever is called and whatever fails, everything that was made is given back.

use crate::recorder::{self, fail, live, quiet, reset};
use crate::sequences::{Experts, Sampling};
use tilekern::acl::{Buffer, Device, Event, Stream};
use tilekern::ops::*;
use tilekern::{Ascend, Backend, DeviceScratch, DeviceTensor, DeviceTensorMut, Run, f16};

/// xorshift64*.
#[derive(Clone)]
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % n
    }
}

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// A query, an allocation and a run.
fn complete<'t, C>(stream: &'t Stream<'t>, call: C) -> Outcome
where
    Ascend<'t>: Run<C> + for<'a> Backend<Scratch<'a> = DeviceScratch<'a>>,
{
    let npu = Ascend::new(stream);
    let mut workspace = Buffer::new(stream, npu.workspace(&call)?.size())?;
    Ok(npu.run(call, DeviceScratch::new(&mut workspace))?)
}

fn sampling(stream: &Stream<'_>, random: &mut Random) -> Outcome {
    let mut s = Sampling::new(stream)?;
    let (q, seeds, generator) = (Buffer::new(stream, 8)?, Buffer::new(stream, 4)?, Buffer::new(stream, 2)?);
    let (mut idx, mut sorted) = (Buffer::new(stream, 8)?, Buffer::new(stream, 8)?);
    let mut call = s.call();
    match random.below(5) {
        0 => {}
        1 => call.q = Some(Noise::Exponential(DeviceTensor::new([2, 4], &q)?)),
        2 => {
            call.post_sample = PostSample::MultiNomial;
            call.q = Some(Noise::Seeds(DeviceTensor::new([2, 2], &seeds)?));
        }
        3 => {
            call.post_sample = PostSample::MultiNomial;
            call.generator = Some(DeviceTensor::new([2], &generator)?);
        }
        _ => {
            call.logits_select_idx = None;
            call.logits_idx = Some(DeviceTensorMut::new([2, 4], &mut idx)?);
            call.logits_sort_masked = Some(DeviceTensorMut::new([2, 4], &mut sorted)?);
        }
    }
    complete(stream, call)
}

fn first_version(stream: &Stream<'_>) -> Outcome {
    let (logits, k, mut chosen) = (Buffer::<f16>::new(stream, 8)?, Buffer::new(stream, 2)?, Buffer::new(stream, 2)?);
    let tensor = DeviceTensor::new([2, 4], &logits)?;
    let p = DeviceTensor::new([2], &logits)?;
    complete(stream, TopKTopPSampleV1::new(tensor, DeviceTensor::new([2], &k)?, p, DeviceTensorMut::new([2], &mut chosen)?))
}

fn filters(stream: &Stream<'_>) -> Outcome {
    let (logits, k, mut out) = (Buffer::<f16>::new(stream, 8)?, Buffer::new(stream, 2)?, Buffer::new(stream, 8)?);
    let mut call = ApplyTopKTopP::new(DeviceTensor::new([2, 4], &logits)?, DeviceTensorMut::new([2, 4], &mut out)?);
    call.k = Some(DeviceTensor::new([2], &k)?);
    complete(stream, call)
}

fn experts(stream: &Stream<'_>, random: &mut Random) -> Outcome {
    let mut e = Experts::new(stream)?;
    let mut call = if random.below(2) == 0 { e.eight() } else { e.four() };
    if matches!(call.weight, GroupedWeight::I8(_)) {
        call.arithmetic = 1 + random.below(2) as i32;
    }
    complete(stream, call)
}

fn events(stream: &Stream<'_>) -> Outcome {
    let other = Stream::new(stream.device())?;
    let event = Event::new(stream.device())?;
    event.record(stream)?;
    other.wait(&event)?;
    let (probs, mut out) = (Buffer::from_slice(stream, &[1.0f32; 4])?, Buffer::new(&other, 1)?);
    complete(&other, Multinomial::new(DeviceTensor::new([4], &probs)?, DeviceTensorMut::new([1], &mut out)?))?;
    Ok(other.synchronize()?)
}

fn sequence(random: &mut Random) -> Outcome {
    let table = if random.below(4) == 0 { recorder::custom() } else { recorder::table() };
    let device = Device::open(&table, 0)?;
    let stream = Stream::new(&device)?;
    for _ in 0..=random.below(3) {
        match random.below(7) {
            0..3 => sampling(&stream, random)?,
            3 => first_version(&stream)?,
            4 => filters(&stream)?,
            5 => experts(&stream, random)?,
            _ => events(&stream)?,
        }
    }
    Ok(stream.synchronize()?)
}

#[test]
fn a_hundred_thousand_sequences() {
    let (mut succeeded, mut failed) = (0, 0);
    for n in 0..100_000 {
        let mut random = Random(n * 2 + 1);
        reset(64 * random.below(2));
        quiet();
        // One call in 40 fails; every code says that the work, if any, has ended.
        let mut failures = random.clone();
        fail(move |name| (name != "aclrtSetCurrentContext" && failures.below(40) == 0).then_some(507_015));
        match sequence(&mut random) {
            Ok(()) => succeeded += 1,
            Err(_) => failed += 1,
        }
        assert_eq!(live(), Default::default(), "sequence {n}");
    }
    assert!(succeeded > 10_000 && failed > 10_000, "{succeeded} {failed}");
}
