//! Dispatch to the library that runs aclnn's operators on the host's processor: every operation gives the bits that the host gives
//! to a direct call.

mod example;
mod experts;
mod sampling;
mod threads;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{LazyLock, OnceLock};
use tilekern::acl::{Buffer, Device, Stream, Table, load};
use tilekern::{Ascend, Backend, DeviceScratch, DeviceTensor, DeviceTensorMut, Dims, Host, Run, Scratch, Tensor, TensorMut};

/// `libtilekern_opapi.so`. `cargo test` builds no such library, so it is built here.
fn library() -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "-q", "--profile", "test", "-p", "tilekern-opapi-host", "--target-dir"]).arg(directory);
    assert!(cargo.current_dir(env!("CARGO_MANIFEST_DIR")).status().unwrap().success());
    directory.join("debug/libtilekern_opapi.so")
}

/// Its functions.
fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    // SAFETY: a library that is checked against the same prototypes.
    TABLE.get_or_init(|| unsafe { load::library(&library()) }.unwrap())
}

/// Its device, which no test gives back.
static DEVICE: LazyLock<Device<'static>> = LazyLock::new(|| Device::open(table(), 0).unwrap());

/// The same numbers in the host's memory and in the device's.
pub struct Pair<'s, T> {
    host: Vec<T>,
    device: Buffer<'s, T>,
}

impl<'s, T: bytemuck::Pod + PartialEq> Pair<'s, T> {
    fn new(stream: &'s Stream<'s>, host: Vec<T>) -> Pair<'s, T> {
        let device = Buffer::from_slice(stream, &host).unwrap();
        Pair { host, device }
    }

    fn random(stream: &'s Stream<'s>, len: usize, mut number: impl FnMut() -> T) -> Pair<'s, T> {
        Pair::new(stream, (0..len).map(|_| number()).collect())
    }

    /// Both sides hold the same bytes, and not those that they began with.
    fn agrees(&self, before: T) {
        let mut device = vec![before; self.host.len()];
        self.device.read(&mut device).unwrap();
        assert_eq!(bytemuck::cast_slice::<T, u8>(&device), bytemuck::cast_slice::<T, u8>(&self.host));
        assert!(device.iter().any(|value| *value != before));
    }
}

/// One of the two backends, and its tensors over pairs.
pub trait Side {
    type B: Backend;
    fn read<'a, T: bytemuck::Pod>(&self, pair: &'a Pair<'_, T>, dims: Dims) -> <Self::B as Backend>::View<'a, T>;
    fn write<'a, T: bytemuck::Pod>(&self, pair: &'a mut Pair<'_, T>, dims: Dims) -> <Self::B as Backend>::ViewMut<'a, T>;
}

pub struct OnHost;
pub struct OnDevice<'t>(std::marker::PhantomData<Ascend<'t>>);

/// The side of this stream.
fn device<'t>(_: &'t Stream<'t>) -> OnDevice<'t> {
    OnDevice(std::marker::PhantomData)
}

impl Side for OnHost {
    type B = Host;
    fn read<'a, T: bytemuck::Pod>(&self, pair: &'a Pair<'_, T>, dims: Dims) -> Tensor<'a, T> {
        Tensor::with(dims, &pair.host).unwrap()
    }
    fn write<'a, T: bytemuck::Pod>(&self, pair: &'a mut Pair<'_, T>, dims: Dims) -> TensorMut<'a, T> {
        TensorMut::with(dims, &mut pair.host).unwrap()
    }
}

impl<'t> Side for OnDevice<'t> {
    type B = Ascend<'t>;
    fn read<'a, T: bytemuck::Pod>(&self, pair: &'a Pair<'_, T>, dims: Dims) -> DeviceTensor<'a, T> {
        DeviceTensor::with(dims, &pair.device).unwrap()
    }
    fn write<'a, T: bytemuck::Pod>(&self, pair: &'a mut Pair<'_, T>, dims: Dims) -> DeviceTensorMut<'a, T> {
        DeviceTensorMut::with(dims, &mut pair.device).unwrap()
    }
}

fn on_host<C>(call: C)
where
    Host: Run<C> + for<'a> Backend<Scratch<'a> = &'a mut [u8]>,
{
    let host = Host::new();
    let mut scratch = Scratch::new(host.workspace(&call).unwrap());
    host.run(call, &mut scratch).unwrap();
}

fn on_device<'t, C>(stream: &'t Stream<'t>, call: C)
where
    Ascend<'t>: Run<C> + for<'a> Backend<Scratch<'a> = DeviceScratch<'a>>,
{
    let npu = Ascend::new(stream);
    let mut workspace = Buffer::new(stream, npu.workspace(&call).unwrap().size()).unwrap();
    npu.run(call, DeviceScratch::new(&mut workspace)).unwrap();
    stream.synchronize().unwrap();
}

fn dims<const R: usize>(shape: [usize; R]) -> Dims {
    Dims::contiguous(&shape).unwrap()
}

fn strided<const R: usize>(shape: [usize; R], strides: [usize; R]) -> Dims {
    Dims::strided(&shape, &strides).unwrap()
}
