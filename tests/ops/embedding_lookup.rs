//! EmbeddingLookup: rows of the table, the factor, strides, threads and refusals.

use crate::common::{Buffer, Order, Random, bits, every_host, refused, run, shape_only, shape_only_mut};
use half::{bf16, f16};
use tilekern::ops::EmbeddingLookup;
use tilekern::{Host, ParallelFor, Tensor, TensorMut};
use tilekern_kernels::element::Element;

struct Case<T> {
    ids: Buffer<i32>,
    table: Buffer<T>,
    output: Buffer<T>,
    /// The rows without a factor.
    rows: Vec<T>,
}

/// `sizes` are batch, tokens, vocabulary and H.
fn case<T: Element + std::fmt::Debug>(sizes: [usize; 4], order: Order) -> Case<T> {
    let [batch, tokens, vocabulary, columns] = sizes;
    let mut random = Random(1);
    let table: Vec<T> = (0..vocabulary * columns).map(|_| T::narrow(random.number())).collect();
    let mut ids: Vec<i32> = (0..batch * tokens).map(|_| random.below(vocabulary) as i32).collect();
    ids[0] = vocabulary as i32 - 1;
    let rows = ids.iter().flat_map(|&id| table[id as usize * columns..][..columns].to_vec()).collect();
    Case {
        ids: Buffer::new(&[batch, tokens], order, &ids, -1),
        table: Buffer::new(&[vocabulary, columns], order, &table, T::narrow(99.0)),
        output: Buffer::empty(&[batch, tokens, columns], order, T::narrow(-7.5)),
        rows,
    }
}

impl<T: Element + std::fmt::Debug> Case<T> {
    fn call<P: ParallelFor>(&mut self) -> EmbeddingLookup<'_, Host<P>, T> {
        EmbeddingLookup::new(self.ids.view(), self.table.view(), self.output.view_mut())
    }
}

fn looks_up<T: Element + std::fmt::Debug>() {
    // The last one is cut into several tasks.
    for sizes in [[1, 1, 1, 1], [2, 3, 5, 7], [1, 4, 9, 64], [3, 2, 17, 172], [4, 10, 20, 600]] {
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            every_host(|host| {
                let context = format!("{} {sizes:?} {order:?}", host.isa().name());
                for scale in [1.0, 0.3] {
                    let mut case = case::<T>(sizes, order);
                    run(host, EmbeddingLookup { scale, ..case.call() }).unwrap();
                    let expected = case.rows.iter().map(|x| bits(T::narrow(x.as_() * scale as f32).as_()));
                    let found: Vec<u32> = case.output.values().iter().map(|x| bits(x.as_())).collect();
                    assert_eq!(found, expected.collect::<Vec<_>>(), "{context} {scale}");
                }
            });
        }
    }
}

#[test]
fn f32_rows() {
    looks_up::<f32>();
}

#[test]
fn half_rows() {
    looks_up::<f16>();
    looks_up::<bf16>();
}

#[test]
fn a_factor_of_one_copies_every_bit() {
    let table = [0x7F80_0001u32, 0xFFC1_2345, 1, 0x8000_0000].map(f32::from_bits);
    let mut output = [0.0f32; 4];
    let output_view = TensorMut::new([1, 1, 4], &mut output).unwrap();
    let ids = Tensor::new([1, 1], &[0]).unwrap();
    run(&Host::new(), EmbeddingLookup::new(ids, Tensor::new([1, 4], &table).unwrap(), output_view)).unwrap();
    assert_eq!(output.map(f32::to_bits), table.map(f32::to_bits));
}

#[test]
fn no_rows_write_nothing() {
    let ids = Tensor::new([0, 2], &[]).unwrap();
    let table = Tensor::new([1, 3], &[1.0f32; 3]).unwrap();
    let call = EmbeddingLookup::new(ids, table, TensorMut::new([0, 2, 3], &mut []).unwrap());
    assert_eq!(run(&Host::new(), call), Ok(()));
}

/// One changed argument, and the refusal that names it; nothing is written.
fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut EmbeddingLookup<'a, Host, f32>)) {
    let mut case = case([2, 3, 5, 8], Order::Contiguous);
    let mut call = case.call();
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert!(case.output.values().iter().all(|&y| y == -7.5));
}

#[test]
fn refusals() {
    refuses(161001, "ids", |call| call.ids = shape_only(&[2, 3]));
    refuses(161001, "table", |call| call.table = shape_only(&[5, 8]));
    refuses(161001, "output", |call| call.output = shape_only_mut(&[2, 3, 8]));
    refuses(161002, "ids", |call| call.ids = shape_only(&[6]));
    refuses(161002, "ids", |call| call.ids = shape_only(&[2, 0]));
    refuses(161002, "table", |call| call.table = shape_only(&[0, 8]));
    refuses(161002, "table", |call| call.table = shape_only(&[5, 0]));
    refuses(161002, "table", |call| call.table = shape_only(&[40]));
    refuses(161002, "output", |call| call.output = shape_only_mut(&[6, 8]));
    refuses(161002, "output", |call| call.output = shape_only_mut(&[2, 3, 7]));
    for scale in [f64::NAN, f64::INFINITY, 1e39] {
        refuses(161002, "scale", |call| call.scale = scale);
    }
}

#[test]
fn ids_outside_the_vocabulary() {
    for id in [5, -1, i32::MIN, i32::MAX] {
        // The last one: rows before it must not have been written.
        let ids = vec![0, 1, 2, 3, 4, id].leak();
        refuses(161002, "ids", |call| call.ids = Tensor::new([2, 3], ids).unwrap());
    }
}

#[test]
fn an_output_overlaps_nothing() {
    let mut memory = [0.0f32; 48];
    let mut case = case([2, 3, 5, 8], Order::Contiguous);
    let output = TensorMut::strided([2, 3, 8], [24, 7, 1], &mut memory).unwrap();
    assert_eq!(refused(&Host::new(), EmbeddingLookup { output, ..case.call() }), (161002, "output"));
}
