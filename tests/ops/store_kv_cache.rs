//! StoreKvCache: every storage type, strides, threads and refusals; old rows stay.

use crate::common::{Buffer, Order, Random, bits, every_host, refused, run, shape_only, shape_only_mut};
use half::{bf16, f16};
use tilekern::ops::StoreKvCache;
use tilekern::{Host, ParallelFor, Tensor, TensorMut};
use tilekern_kernels::element::Element;

struct Case<K> {
    key: Buffer<f32>,
    value: Buffer<f32>,
    start_pos: Buffer<i64>,
    key_cache: Buffer<K>,
    value_cache: Buffer<K>,
    /// The caches afterwards.
    keys: Vec<K>,
    values: Vec<K>,
}

/// `sizes` are batch, heads, tokens and D.
fn case<K: Element + std::fmt::Debug>(sizes: [usize; 4], order: Order) -> Case<K> {
    let [batch, heads, tokens, size] = sizes;
    let positions = tokens + 4;
    let mut random = Random(1);
    let n = batch * heads * tokens * size;
    let key: Vec<f32> = (0..n).map(|_| random.number()).collect();
    let value: Vec<f32> = (0..n).map(|_| random.number()).collect();
    let start_pos: Vec<i64> = (0..batch).map(|_| random.below(5) as i64).collect();
    let old: Vec<K> = (0..batch * heads * positions * size).map(|_| K::narrow(random.unit())).collect();
    let (mut keys, mut values) = (old.clone(), old.clone());
    for i in 0..n {
        let (d, s, head) = (i % size, i / size % tokens, i / size / tokens);
        let at = (head * positions + start_pos[head / heads] as usize + s) * size + d;
        (keys[at], values[at]) = (K::narrow(key[i]), K::narrow(value[i]));
    }
    let cache = [batch, heads, positions, size];
    Case {
        key: Buffer::new(&sizes, order, &key, 0.0),
        value: Buffer::new(&sizes, order, &value, 0.0),
        start_pos: Buffer::new(&order.column(batch), order, &start_pos, 0),
        key_cache: Buffer::new(&cache, order, &old, K::narrow(-7.5)),
        value_cache: Buffer::new(&cache, order, &old, K::narrow(-7.5)),
        keys,
        values,
    }
}

impl<K: Element + std::fmt::Debug> Case<K> {
    fn call<P: ParallelFor>(&mut self) -> StoreKvCache<'_, Host<P>, K> {
        let (key, value, start_pos) = (self.key.view(), self.value.view(), self.start_pos.view());
        StoreKvCache::new(key, value, start_pos, self.key_cache.view_mut(), self.value_cache.view_mut())
    }
}

fn all_bits<K: Element>(x: &[K]) -> Vec<u32> {
    x.iter().map(|x| bits(x.as_())).collect()
}

fn stores<K: Element + std::fmt::Debug>() {
    // The last one is cut into several tasks.
    for sizes in [[1, 1, 1, 1], [2, 3, 1, 8], [1, 2, 3, 48], [3, 1, 2, 7], [2, 4, 10, 64]] {
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            every_host(|host| {
                let mut case = case::<K>(sizes, order);
                run(host, case.call()).unwrap();
                let context = format!("{} {sizes:?} {order:?}", host.isa().name());
                assert_eq!(all_bits(&case.key_cache.values()), all_bits(&case.keys), "{context}");
                assert_eq!(all_bits(&case.value_cache.values()), all_bits(&case.values), "{context}");
            });
        }
    }
}

#[test]
fn stores_into_f32() {
    stores::<f32>();
}

#[test]
fn stores_into_halves() {
    stores::<f16>();
    stores::<bf16>();
}

#[test]
fn keys_and_values_may_share_one_buffer() {
    let (key, value) = ([1.0f32, 2.0], [3.0f32, 4.0]);
    // [T][2][D]: the key of a position beside its value.
    let mut memory = [0.0f32; 12];
    let first = memory.as_mut_ptr();
    let dims = tilekern::Dims::strided(&[1, 1, 3, 2], &[12, 12, 4, 1]).unwrap();
    // SAFETY: the two caches have no element in common, and `memory` is not used otherwise.
    let (keys, values) = unsafe { (TensorMut::from_raw(dims, first), TensorMut::from_raw(dims, first.add(2))) };
    let input = |x| Tensor::new([1, 1, 1, 2], x).unwrap();
    let call = StoreKvCache::new(input(&key), input(&value), Tensor::new([1], &[1]).unwrap(), keys, values);
    run(&Host::new(), call).unwrap();
    assert_eq!(memory, [0.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 0.0, 0.0, 0.0, 0.0]);
}

/// Wherever the two lie in the rows of one buffer: neither order nor rank decides whether they are apart, elements do.
#[test]
fn keys_and_values_share_a_buffer_in_every_order() {
    let [b, kv, t, d] = [2usize, 3, 2, 4];
    let key: Vec<f32> = (0..b * kv * t * d).map(|i| i as f32 + 1.0).collect();
    let value: Vec<f32> = key.iter().map(|x| -x).collect();
    // The strides of [B,KV,T,D], and from keys to values: in [B,T,2,KV,D], [B,T,KV,2,D], [B,2,T,KV,D], [2,B,KV,T,D], and in
    // [B,KV,T,2,D] with room behind each B that is no multiple of a row.
    let orders = [
        ([t * 2 * kv * d, d, 2 * kv * d, 1], kv * d),
        ([t * kv * 2 * d, 2 * d, kv * 2 * d, 1], d),
        ([2 * t * kv * d, d, kv * d, 1], t * kv * d),
        ([kv * t * d, t * d, d, 1], b * kv * t * d),
        ([2 * kv * t * d + 3, t * 2 * d, 2 * d, 1], d),
    ];
    for (strides, apart) in orders {
        let mut memory = vec![0.0f32; 2 * key.len() + 3 * b];
        let first = memory.as_mut_ptr();
        let dims = tilekern::Dims::strided(&[b, kv, t, d], &strides).unwrap();
        let store = |apart| {
            // SAFETY: as far as the call runs, the two caches have no element in common, and `memory` is not used otherwise.
            let (keys, values) = unsafe { (TensorMut::from_raw(dims, first), TensorMut::from_raw(dims, first.add(apart))) };
            let input = |x| Tensor::new([b, kv, t, d], x).unwrap();
            run(&Host::new(), StoreKvCache::new(input(&key), input(&value), Tensor::new([b], &[0, 0]).unwrap(), keys, values))
        };
        for wrong in [0, 1, apart - 1] {
            assert_eq!(store(wrong).unwrap_err().argument(), "key_cache", "{strides:?} {wrong}");
        }
        store(apart).unwrap();
        for (i, &x) in key.iter().enumerate() {
            let at = i / (kv * t * d) * strides[0] + i / (t * d) % kv * strides[1] + i / d % t * strides[2] + i % d;
            assert_eq!((memory[at], memory[at + apart]), (x, -x), "{strides:?} {i}");
        }
    }
}

#[test]
fn no_rows_write_nothing() {
    let call = StoreKvCache::<_, f16>::new(
        Tensor::new([0, 2, 1, 4], &[]).unwrap(),
        Tensor::new([0, 2, 1, 4], &[]).unwrap(),
        Tensor::new([0], &[]).unwrap(),
        TensorMut::new([0, 2, 3, 4], &mut []).unwrap(),
        TensorMut::new([0, 2, 3, 4], &mut []).unwrap(),
    );
    assert_eq!(run(&Host::new(), call), Ok(()));
}

/// One changed argument, and the refusal that names it; nothing is written.
fn refuses(status: i32, argument: &str, change: impl for<'a> Fn(&mut StoreKvCache<'a, Host, f32>)) {
    let mut case = case([2, 3, 2, 8], Order::Contiguous);
    let before = (case.key_cache.values(), case.value_cache.values());
    let mut call = case.call();
    change(&mut call);
    assert_eq!(refused(&Host::new(), call), (status, argument));
    assert!((case.key_cache.values(), case.value_cache.values()) == before);
}

#[test]
fn refusals() {
    refuses(161001, "key", |call| call.key = shape_only(&[2, 3, 2, 8]));
    refuses(161001, "value", |call| call.value = shape_only(&[2, 3, 2, 8]));
    refuses(161001, "start_pos", |call| call.start_pos = shape_only(&[2]));
    refuses(161001, "key_cache", |call| call.key_cache = shape_only_mut(&[2, 3, 6, 8]));
    refuses(161001, "value_cache", |call| call.value_cache = shape_only_mut(&[2, 3, 6, 8]));
    refuses(161002, "key", |call| call.key = shape_only(&[2, 3, 16]));
    refuses(161002, "key", |call| call.key = shape_only(&[2, 3, 0, 8]));
    refuses(161002, "value", |call| call.value = shape_only(&[2, 3, 1, 8]));
    refuses(161002, "start_pos", |call| call.start_pos = shape_only(&[2, 2]));
    refuses(161002, "key_cache", |call| call.key_cache = shape_only_mut(&[2, 1, 6, 8]));
    refuses(161002, "key_cache", |call| call.key_cache = shape_only_mut(&[2, 3, 0, 8]));
    refuses(161002, "value_cache", |call| call.value_cache = shape_only_mut(&[2, 3, 5, 8]));
}

#[test]
fn positions_outside_the_cache() {
    refuses(161002, "start_pos", |call| call.start_pos = Tensor::new([2], &[0, -1]).unwrap());
    refuses(161002, "start_pos", |call| call.start_pos = Tensor::new([2], &[5, 0]).unwrap());
    refuses(161002, "start_pos", |call| call.start_pos = Tensor::new([2], &[i64::MIN, 0]).unwrap());
    let mut case = case::<f32>([2, 3, 2, 8], Order::Contiguous);
    let call = StoreKvCache { start_pos: Tensor::new([2], &[4, 0]).unwrap(), ..case.call() };
    assert_eq!(run(&Host::new(), call), Ok(()));
}

#[test]
fn a_cache_overlaps_nothing() {
    let mut memory = vec![0.0f32; 2 * 3 * 6 * 8 + 48];
    let mut case = case([2, 3, 2, 8], Order::Contiguous);
    let dims = |shape: &[usize]| tilekern::Dims::contiguous(shape).unwrap();
    let first = memory.as_mut_ptr();
    // SAFETY: the call refuses the overlap before it touches the memory.
    let (cache, key) = unsafe {
        let cache = TensorMut::from_raw(dims(&[2, 3, 6, 8]), first);
        (cache, Tensor::from_raw(dims(&[2, 3, 2, 8]), first.add(200)))
    };
    let call = StoreKvCache { key_cache: cache, key, ..case.call() };
    assert_eq!(refused(&Host::new(), call), (161002, "key_cache"));
}
