//! RopeTable: against the standard library's functions, chunks of a table against the whole, a golden digest, and refusals.

use crate::common::{Buffer, Order, every_host, refused, run, shape_only_mut};
use tilekern::ops::RopeTable;
use tilekern::{Host, TensorMut};

fn table(rows: usize, size: usize, start: i64, theta: f64) -> Vec<f32> {
    let mut table = vec![0.0; rows * size];
    let output = TensorMut::with(tilekern::Dims::contiguous(&[rows, size]).unwrap(), &mut table).unwrap();
    run(&Host::new(), RopeTable { start, theta, output }).unwrap();
    table
}

#[test]
fn close_to_the_standard_library() {
    for (size, start, theta) in [(2, 0, 1e4), (6, 4_090, 1e4), (64, 100_000, 1e4), (128, 1 << 40, 5e5), (8, 3, 0.5)] {
        for (i, found) in table(9, size, start, theta).into_iter().enumerate() {
            let (position, pair) = (start + (i / size) as i64, i % size / 2);
            let angle = position as f64 * theta.powf(-((2 * pair) as f64) / size as f64);
            let expected = if i % 2 == 0 { angle.cos() } else { angle.sin() };
            // The rounding to f32, and one unit of the two powers, which an angle carries in full.
            let bound = 6e-8 * expected.abs() + 4e-16 * angle;
            assert!((f64::from(found) - expected).abs() <= bound, "{size} {start} {theta} {i}: {found} {expected}");
        }
    }
}

/// The numbers of this table are the same on every processor and build; the digest is of one computed with another library.
#[test]
fn golden_digest() {
    let digest = table(512, 64, 0, 1e4)
        .into_iter()
        .fold(0xCBF2_9CE4_8422_2325u64, |h, x| (h ^ u64::from(x.to_bits())).wrapping_mul(0x0100_0000_01B3));
    assert_eq!(digest, 0x0FEE_A9D5_B305_85F4);
}

#[test]
fn every_host_and_order_and_any_cut() {
    // Large enough for several tasks.
    let (rows, size) = (40, 48);
    let whole = table(rows, size, 0, 1e4);
    assert_eq!(table(rows - 7, size, 7, 1e4), whole[7 * size..]);
    for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
        every_host(|host| {
            let mut output = Buffer::empty(&[rows, size], order, -7.5);
            run(host, RopeTable::new(output.view_mut())).unwrap();
            assert_eq!(output.values(), whole, "{} {order:?}", host.isa().name());
        });
    }
}

#[test]
fn refusals() {
    let refuses = |argument, start, theta, shape: &[usize]| {
        let mut memory = [-7.5f32; 24];
        let dims = tilekern::Dims::contiguous(shape).unwrap();
        let output = TensorMut::with(dims, &mut memory).unwrap();
        assert_eq!(refused(&Host::new(), RopeTable { start, theta, output }), (161002, argument));
        assert_eq!(memory, [-7.5; 24]);
    };
    refuses("start", -1, 1e4, &[3, 8]);
    refuses("start", i64::MAX - 1, 1e4, &[3, 8]);
    for theta in [0.0, -1.0, 5e-324, 1e-290, f64::INFINITY, f64::NAN] {
        refuses("theta", 0, theta, &[3, 8]);
    }
    refuses("output", 0, 1e4, &[3, 7]);
    refuses("output", 0, 1e4, &[3, 0]);
    refuses("output", 0, 1e4, &[24]);
    assert_eq!(refused(&Host::new(), RopeTable::new(shape_only_mut(&[3, 8]))), (161001, "output"));
    let mut memory = [0.0f32; 24];
    let output = TensorMut::strided([3, 8], [7, 1], &mut memory).unwrap();
    assert_eq!(refused(&Host::new(), RopeTable::new(output)), (161002, "output"));
    assert_eq!(run(&Host::new(), RopeTable::new(TensorMut::new([0, 8], &mut []).unwrap())), Ok(()));
}
