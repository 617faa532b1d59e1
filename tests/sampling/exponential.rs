//! Exponential: every element against the scalar definition, whatever the shape, the strides and the threads; refusals.

use crate::common::{Buffer, Order, bits, every_host, refused, run, shape_only_mut};
use half::{bf16, f16};
use tilekern::ops::Exponential;
use tilekern::{Dims, Host, Isa, Serial, TensorMut};
use tilekern_kernels::element::Element;
use tilekern_kernels::reference;

fn defined<T: Element>(seed: i64, offset: i64, rate: f64, n: usize) -> Vec<u32> {
    let number = |i| reference::exponential(seed as u64, offset as u64, n as u64, i as u64);
    (0..n).map(|i| bits(T::narrow(number(i) * (1.0 / rate as f32)).as_())).collect()
}

fn fills<T: Element + std::fmt::Debug>(rate: f64) {
    let shapes: [&[usize]; 9] = [&[], &[1], &[17], &[2, 4], &[3, 100], &[2, 3, 37], &[9000], &[2, 1, 2, 2, 5], &[3, 5000]];
    for (n, shape) in shapes.into_iter().enumerate() {
        let (seed, offset) = ([1, -7, i64::MIN][n % 3], [0, 5, -1, 4][n % 4]);
        let expected = defined::<T>(seed, offset, rate, shape.iter().product());
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            every_host(|host| {
                let mut out = Buffer::empty(shape, order, T::narrow(-3.5));
                let mut call = Exponential::new(out.view_mut());
                (call.rate, call.seed, call.offset) = (rate, seed, offset);
                run(host, call).unwrap();
                let found: Vec<u32> = out.values().iter().map(|x| bits(x.as_())).collect();
                assert!(found == expected, "{:?} {shape:?} {order:?}", host.isa());
            });
        }
    }
}

#[test]
fn every_element() {
    fills::<f32>(1.0);
    fills::<f32>(3.0);
    fills::<f16>(0.7);
    fills::<bf16>(1.0);
}

/// More elements than threads of the mapping: turns beyond the first, and beyond the fourth a new counter.
#[test]
fn turns() {
    let n = 624 * 256 * 5 + 11;
    for isa in Isa::ALL.into_iter().filter(|isa| isa.is_available()) {
        let mut out = vec![0.0f32; n];
        let mut call = Exponential::new(TensorMut::new([n], &mut out).unwrap());
        (call.seed, call.offset) = (99, 2);
        run(&Host::with(isa, Serial).unwrap(), call).unwrap();
        for i in (0..n).step_by(97).chain(n - 20..n) {
            assert_eq!(out[i].to_bits(), reference::exponential(99, 2, n as u64, i as u64).to_bits(), "{isa:?} {i}");
        }
    }
}

/// Rates at the ends of f32: never an error, never a NaN.
#[test]
fn extreme_rates() {
    for (rate, number) in [(1e-60, f32::INFINITY), (1e60, 0.0), (f64::INFINITY, 0.0), (f64::MIN_POSITIVE, f32::INFINITY)] {
        let mut out = [1.0f32; 5];
        let mut call = Exponential::new(TensorMut::new([5], &mut out).unwrap());
        call.rate = rate;
        run(&Host::new(), call).unwrap();
        assert_eq!(out, [number; 5], "{rate}");
    }
}

/// One changed argument, and the refusal that names it; nothing is written.
fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut Exponential<'a, Host, f32>)) {
    let mut memory = [-1.0f32; 12];
    let mut call = Exponential::new(TensorMut::new([3, 4], &mut memory).unwrap());
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert_eq!(memory, [-1.0; 12]);
}

#[test]
fn refusals() {
    for rate in [0.0, -1.0, f64::NAN, f64::NEG_INFINITY, -0.0] {
        refuses(161002, "rate", |call| call.rate = rate);
    }
    refuses(161001, "out", |call| call.out = shape_only_mut(&[3, 4]));
    refuses(161002, "out", |call| call.out = shape_only_mut(&[3, 0]));
    let overlapping = Dims::strided(&[3, 4], &[2, 1]).unwrap();
    refuses(161002, "out", |call| call.out = TensorMut::shape_only(overlapping));
}

#[test]
fn no_rows_write_nothing() {
    for shape in [&[0][..], &[0, 4]] {
        assert_eq!(run(&Host::new(), Exponential::<Host, f32>::new(shape_only_mut(shape))), Ok(()));
    }
}
