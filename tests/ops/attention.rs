//! Attention as an operation: heads, positions, strides and refusals, beside the scalar definition.

use crate::common::{Random, bits, hosts, run};
use tilekern::kernels::reference;
use tilekern::{Error, Host, Status, Tensor, TensorMut, ops::Attention};

#[derive(Clone, Copy)]
struct Sizes {
    b: usize,
    heads: usize,
    kv: usize,
    s: usize,
    d: usize,
    t: usize,
}

struct Case {
    z: Sizes,
    query: Vec<f32>,
    keys: Vec<f32>,
    values: Vec<f32>,
    mask: Vec<f32>,
    start: Vec<i64>,
}

impl Case {
    fn new(random: &mut Random, z: Sizes) -> Case {
        let mut numbers = |n: usize| -> Vec<f32> { (0..n).map(|_| random.unit() * 2.0).collect() };
        Case {
            z,
            query: numbers(z.b * z.heads * z.s * z.d),
            keys: numbers(z.b * z.kv * z.t * z.d),
            values: numbers(z.b * z.kv * z.t * z.d),
            mask: numbers(z.s * z.t),
            start: (0..z.b).map(|b| ((7 * b + 3) % (z.t - z.s + 1)) as i64).collect(),
        }
    }

    fn call<'a>(&'a self, out: &'a mut [f32]) -> Result<Attention<'a, Host, f32>, Error> {
        let Sizes { b, heads, kv, s, d, t } = self.z;
        Ok(Attention::new(
            Tensor::new([b, heads, s, d], &self.query)?,
            Tensor::new([b, kv, t, d], &self.keys)?,
            Tensor::new([b, kv, t, d], &self.values)?,
            Tensor::new([b], &self.start)?,
            TensorMut::new([b, heads, s, d], out)?,
        ))
    }

    fn expected(&self, masked: bool, scale: f64) -> Vec<u32> {
        let Sizes { b, heads, kv, s, d, t } = self.z;
        let mut out = vec![0.0; b * heads * s * d];
        for row in 0..b * heads * s {
            let (batch, head, token) = (row / s / heads, row / s % heads, row % s);
            let cache = (batch * kv + head / (heads / kv)) * t * d;
            let positions = self.start[batch] as usize + token + 1;
            let mask = masked.then_some(&self.mask[token * t..(token + 1) * t]);
            reference::attention(
                &self.query[row * d..(row + 1) * d],
                &self.keys[cache..],
                &self.values[cache..],
                if scale == 0.0 { (1.0 / (d as f64).sqrt()) as f32 } else { scale as f32 },
                mask,
                &mut vec![0.0; positions],
                &mut out[row * d..(row + 1) * d],
            );
        }
        out.into_iter().map(bits).collect()
    }
}

/// The last are the head sizes that document 003 has kernels of their own for.
const SIZES: [Sizes; 7] = [
    Sizes { b: 1, heads: 1, kv: 1, s: 1, d: 2, t: 1 },
    Sizes { b: 2, heads: 4, kv: 2, s: 3, d: 8, t: 21 },
    Sizes { b: 3, heads: 6, kv: 1, s: 1, d: 20, t: 40 },
    Sizes { b: 1, heads: 3, kv: 3, s: 5, d: 64, t: 70 },
    Sizes { b: 1, heads: 2, kv: 1, s: 2, d: 256, t: 19 },
    Sizes { b: 1, heads: 1, kv: 1, s: 1, d: 512, t: 40 },
    Sizes { b: 2, heads: 2, kv: 2, s: 1, d: 1024, t: 18 },
];

#[test]
fn heads_read_their_group_and_stop_at_their_position() -> Result<(), Error> {
    let mut random = Random(21);
    for z in SIZES {
        let case = Case::new(&mut random, z);
        let cases = [(false, 0.0), (true, 0.0), (true, 0.37)];
        for ((masked, scale), host) in cases.into_iter().flat_map(|case| hosts().into_iter().map(move |host| (case, host))) {
            let mut out = vec![f32::NAN; z.b * z.heads * z.s * z.d];
            let mut call = case.call(&mut out)?;
            call.mask = if masked { Some(Tensor::new([z.s, z.t], &case.mask)?) } else { None };
            call.scale = scale;
            run(&host, call)?;
            let found: Vec<u32> = out.into_iter().map(bits).collect();
            assert_eq!(found, case.expected(masked, scale), "{}", host.isa().name());
        }
    }
    Ok(())
}

#[test]
fn strides_do_not_matter() -> Result<(), Error> {
    let z = SIZES[1];
    let case = Case::new(&mut Random(22), z);
    // Head size outermost: no row is contiguous.
    let turned =
        |from: &[f32], rows: usize| -> Vec<f32> { (0..from.len()).map(|at| from[at % rows * z.d + at / rows]).collect() };
    let (q, k) = (z.b * z.heads * z.s, z.b * z.kv * z.t);
    let (query, keys, values) = (turned(&case.query, q), turned(&case.keys, k), turned(&case.values, k));
    for host in hosts() {
        let mut out = vec![0.0; q * z.d];
        let mut unused = vec![0.0; q * z.d];
        let mut call = case.call(&mut unused)?;
        call.query = Tensor::strided([z.b, z.heads, z.s, z.d], [z.heads * z.s, z.s, 1, q], &query)?;
        call.key_cache = Tensor::strided([z.b, z.kv, z.t, z.d], [z.kv * z.t, z.t, 1, k], &keys)?;
        call.value_cache = Tensor::strided([z.b, z.kv, z.t, z.d], [z.kv * z.t, z.t, 1, k], &values)?;
        call.output = TensorMut::strided([z.b, z.heads, z.s, z.d], [z.heads * z.s, z.s, 1, q], &mut out)?;
        run(&host, call)?;
        let expected = case.expected(false, 0.0);
        for at in 0..q * z.d {
            assert_eq!(bits(out[at]), expected[at % q * z.d + at / q]);
        }
    }
    Ok(())
}

/// `[T][3][D]`: a key, a value and an output to each row.
#[test]
fn the_output_may_lie_in_gaps_of_the_caches() -> Result<(), Error> {
    let z = Sizes { b: 1, heads: 1, kv: 1, s: 3, d: 4, t: 3 };
    let case = Case::new(&mut Random(25), z);
    let dims = tilekern::Dims::strided(&[1, 1, z.t, z.d], &[3 * z.t * z.d, 3 * z.t * z.d, 3 * z.d, 1])?;
    for host in hosts() {
        let mut memory = vec![7.0; 3 * z.t * z.d];
        for (at, row) in memory.chunks_exact_mut(3 * z.d).enumerate() {
            row[..z.d].copy_from_slice(&case.keys[at * z.d..][..z.d]);
            row[z.d..2 * z.d].copy_from_slice(&case.values[at * z.d..][..z.d]);
        }
        let (mut unused, first) = (vec![0.0; z.s * z.d], memory.as_mut_ptr());
        let mut call = case.call(&mut unused)?;
        // SAFETY: the three have no element in common, and `memory` is not used otherwise.
        (call.key_cache, call.value_cache, call.output) = unsafe {
            (Tensor::from_raw(dims, first), Tensor::from_raw(dims, first.add(z.d)), TensorMut::from_raw(dims, first.add(2 * z.d)))
        };
        // Miri, which looks at this, knows no root.
        call.scale = 0.5;
        run(&host, call)?;
        let found: Vec<u32> = memory.chunks_exact(3 * z.d).flat_map(|row| row[2 * z.d..].iter().map(|&x| bits(x))).collect();
        assert_eq!(found, case.expected(false, 0.5), "{}", host.isa().name());
    }
    Ok(())
}

#[cfg(feature = "rayon")]
#[test]
fn threads_do_not_matter() -> Result<(), Error> {
    let case = Case::new(&mut Random(23), Sizes { b: 2, heads: 8, kv: 4, s: 40, d: 32, t: 200 });
    let expected = case.expected(false, 0.0);
    for threads in [1, 2] {
        let host = Host::with(tilekern::Isa::detect(), tilekern::Rayon::new(threads)?)?;
        let mut out = vec![0.0; 2 * 8 * 40 * 32];
        let Sizes { b, heads, kv, s, d, t } = case.z;
        let call = Attention::new(
            Tensor::new([b, heads, s, d], &case.query)?,
            Tensor::new([b, kv, t, d], &case.keys)?,
            Tensor::new([b, kv, t, d], &case.values)?,
            Tensor::new([b], &case.start)?,
            TensorMut::new([b, heads, s, d], &mut out)?,
        );
        run(&host, call)?;
        assert!(out.iter().zip(&expected).all(|(&a, &b)| bits(a) == b), "{threads} threads");
    }
    Ok(())
}

#[test]
fn bad_calls_are_refused() -> Result<(), Error> {
    let z = SIZES[1];
    let case = Case::new(&mut Random(24), z);
    let host = Host::new();
    let mut out = vec![5.0; z.b * z.heads * z.s * z.d];
    let refused = |out: &mut [f32], change: &dyn Fn(&mut Attention<'_, Host, f32>), argument: &str, status: Status| {
        let mut call = case.call(out).unwrap();
        change(&mut call);
        let error = run(&host, call).unwrap_err();
        assert_eq!((error.argument(), error.status()), (argument, status));
        assert!(out.iter().all(|&v| v == 5.0), "nothing is written");
    };
    let zeros: &'static [f32] = &[0.0; 2000];
    refused(&mut out, &|c| c.query = Tensor::new([2, 4, 3], zeros).unwrap(), "query", Status::Invalid);
    refused(&mut out, &|c| c.query = Tensor::new([2, 4, 0, 8], zeros).unwrap(), "query", Status::Invalid);
    refused(&mut out, &|c| c.key_cache = Tensor::new([2, 3, 21, 8], zeros).unwrap(), "key_cache", Status::Invalid);
    refused(&mut out, &|c| c.value_cache = Tensor::new([2, 2, 22, 8], zeros).unwrap(), "value_cache", Status::Invalid);
    refused(&mut out, &|c| c.mask = Some(Tensor::new([3, 20], zeros).unwrap()), "mask", Status::Invalid);
    refused(&mut out, &|c| c.start_pos = Tensor::new([2], &[0, 19]).unwrap(), "start_pos", Status::Invalid);
    refused(&mut out, &|c| c.start_pos = Tensor::new([2], &[-1, 0]).unwrap(), "start_pos", Status::Invalid);
    refused(&mut out, &|c| c.start_pos = Tensor::new([3], &[0; 3]).unwrap(), "start_pos", Status::Invalid);
    refused(&mut out, &|c| c.scale = f64::NAN, "scale", Status::Invalid);
    refused(&mut out, &|c| c.scale = 1e300, "scale", Status::Invalid);
    let shape = tilekern::Dims::contiguous(&[2, 4, 3, 8])?;
    refused(&mut out, &|c| c.query = Tensor::shape_only(shape), "query", Status::Null);
    let mut call = case.call(&mut out)?;
    call.start_pos = Tensor::new([2], &[0, 19])?;
    assert_eq!(run(&host, call).unwrap_err().to_string(), "start_pos: expected 0 to 18, found 19 (161002)");
    Ok(())
}
