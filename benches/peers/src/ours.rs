//! tilekern through its public interface, and the floor.

use crate::contenders::Contender;
use crate::fresh::fill;
use crate::largest;
use crate::ranks;
use crate::rows::Random;
use tilekern::kernels::dispatch::Level;
use tilekern::ops::{Noise, PostSample, TopKTopPSample};
use tilekern::{Dims, Element, Host, Run, Scratch, Tensor, TensorMut};

pub struct Floor<T> {
    level: Level,
    row: Vec<T>,
}

impl<T: Element> Floor<T> {
    pub fn new(v: usize) -> Floor<T> {
        Floor { level: Level::detect(), row: vec![T::default(); v] }
    }
}

impl<T: Element> Contender for Floor<T> {
    fn prepare(&mut self, row: &[f32]) {
        fill(&mut self.row, row.iter().map(|&x| T::narrow(x)));
    }

    fn choose(&mut self) -> usize {
        // The bits of the maximum: the index is no part of the floor.
        self.level.run(largest::Floor(&self.row)).to_bits() as usize
    }
}

/// What is kept.
#[derive(Clone, Copy)]
pub struct Stages {
    pub k: i32,
    pub p: f32,
    pub min_p: f32,
}

pub struct Ours<T> {
    host: Host,
    scratch: Scratch,
    row: Vec<T>,
    q: Vec<f32>,
    stages: Stages,
    post: PostSample,
    calls: i64,
}

/// The call on a row of `v`, without data.
fn query<T: Element>(host: &Host, v: usize, stages: Stages, post: PostSample) -> Scratch {
    let (row, one) = (Dims::contiguous(&[1, v]).expect("a row"), Dims::contiguous(&[1]).expect("a number"));
    let mut call = TopKTopPSample::<Host, T>::new(
        Tensor::shape_only(row),
        Tensor::shape_only(one),
        Tensor::shape_only(one),
        TensorMut::shape_only(one),
    );
    call.post_sample = post;
    call.min_ps = (stages.min_p > 0.0).then(|| Tensor::shape_only(one));
    call.q = (post == PostSample::QSample).then(|| Noise::Exponential(Tensor::shape_only(row)));
    Scratch::new(host.workspace(&call).expect("a valid call"))
}

impl<T: Element> Ours<T> {
    pub fn new(v: usize, stages: Stages, post: PostSample) -> Ours<T> {
        let host = Host::new();
        let mut random = Random(7);
        let q = (0..v).map(|_| -random.unit().ln() as f32).collect();
        Ours { scratch: query::<T>(&host, v, stages, post), host, row: vec![T::default(); v], q, stages, post, calls: 0 }
    }

    fn call(&mut self) -> Result<usize, tilekern::Error> {
        let v = self.row.len();
        let (k, p, min_p) = ([self.stages.k], [T::narrow(self.stages.p)], [T::narrow(self.stages.min_p)]);
        let (generator, mut chosen) = ([1, 12 * self.calls], [-1i64]);
        self.calls += 1;
        let mut call = TopKTopPSample::new(
            Tensor::new([1, v], &self.row)?,
            Tensor::new([1], &k)?,
            Tensor::new([1], &p)?,
            TensorMut::new([1], &mut chosen)?,
        );
        call.post_sample = self.post;
        if self.stages.min_p > 0.0 {
            call.min_ps = Some(Tensor::new([1], &min_p)?);
        }
        match self.post {
            PostSample::None => {}
            PostSample::QSample => call.q = Some(Noise::Exponential(Tensor::new([1, v], &self.q)?)),
            PostSample::MultiNomial => call.generator = Some(Tensor::new([2], &generator)?),
        }
        self.host.run(call, &mut self.scratch)?;
        Ok(chosen[0] as usize)
    }
}

impl<T: Element> Contender for Ours<T> {
    fn prepare(&mut self, row: &[f32]) {
        ranks::turn(&mut self.q);
        fill(&mut self.row, row.iter().map(|&x| T::narrow(x)));
    }

    fn choose(&mut self) -> usize {
        self.call().expect("a valid call")
    }
}
