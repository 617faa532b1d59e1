//! The vectors that come with the specification (`tests/data/gmm_vectors.json`): results of its numpy reference.

use crate::case::{Case, Layouts, Output, UNTOUCHED, quantised};
use crate::common::{Random, bits, every_host};
use serde_json::Value;
use tilekern::ops::{FORMAT_NZ, GroupedWeight};
use tilekern::{Isa, Tensor};
use tilekern_kernels::dispatch::Level;
use tilekern_kernels::rows::{Quantiser, SwigluQuant};

fn file() -> Value {
    serde_json::from_str(include_str!("../data/gmm_vectors.json")).unwrap()
}

fn ints<T: TryFrom<i64>>(value: &Value) -> Vec<T> {
    value.as_array().unwrap().iter().map(|v| T::try_from(v.as_i64().unwrap()).ok().unwrap()).collect()
}

/// Bits of f32; `nan` for any NaN.
fn floats(value: &Value) -> Vec<f32> {
    let number = |v: &Value| v.as_u64().map_or(f32::NAN, |bits| f32::from_bits(bits as u32));
    value.as_array().unwrap().iter().map(number).collect()
}

fn size(value: &Value, name: &str) -> usize {
    value[name].as_u64().unwrap() as usize
}

/// The scales come from another exp: near in the last bits. `q` of these vectors hangs on no such bit.
fn near(found: u32, expected: f32) -> bool {
    let found = f32::from_bits(found);
    found == expected || (found.is_nan() && expected.is_nan()) || (found - expected).abs() <= expected.abs() * 1e-6
}

fn compare(found: &Output, q: &[i8], scale: &[f32], offset: Option<&[f32]>, context: &str) {
    assert_eq!(found.q[..q.len()], *q, "{context}");
    assert!(found.q[q.len()..].iter().all(|&q| q == UNTOUCHED.0), "{context}: rows behind the last end");
    assert!(found.scale.iter().zip(scale).all(|(&a, &b)| near(a, b)), "{context}: {:?} {scale:?}", found.scale);
    assert!(found.scale[scale.len()..].iter().all(|&s| s == bits(UNTOUCHED.1)), "{context}");
    for (&found, &expected) in found.offset.iter().zip(offset.unwrap_or_default()) {
        assert_eq!(f32::from_bits(found), expected, "{context}");
    }
}

#[test]
fn grouped_matmul_case_of_both_orders_and_layouts() {
    let v = file();
    let [m, k, n, e] = ["M", "K", "N", "E"].map(|name| size(&v, name));
    let nz: Vec<i8> = ints(&v["w_nz"]);
    let mut case = Case { m, k, n, e, x: ints(&v["x"]), w: ints(&v["w_nd"]), list: ints(&v["group_list"]), ..Case::default() };
    (case.w_scale, case.x_scale) = (floats(&v["w_scale_bits"]), floats(&v["x_scale_bits"]));
    let layouts = Layouts { nz, ..Layouts::default() };
    every_host(|host| {
        for (order, fp16) in [(1, true), (2, false), (2, true)] {
            let case = Case { arithmetic: order, fp16, ..case.clone() };
            let (q, scale): (Vec<i8>, _) = (ints(&v[&format!("v{order}_q")]), floats(&v[&format!("v{order}_scale_bits")]));
            let (result, plain) = case.run(host, |_, _| {}, &layouts);
            assert_eq!(result, Ok(()));
            compare(&plain, &q, &scale, None, &format!("{} order {order}", host.isa().name()));
            let (result, blocks) = case.run(
                host,
                |call, layouts| {
                    call.weight = GroupedWeight::I8(Tensor::new([e, n / 32, k / 16, 16, 32], &layouts.nz).unwrap());
                    call.weight_format = FORMAT_NZ;
                },
                &layouts,
            );
            assert!(result == Ok(()) && blocks == plain, "NZ");
        }
    });
}

#[test]
fn grouped_matmul_modes() {
    for v in file()["modes"].as_array().unwrap() {
        let [m, k, n, e] = ["M", "K", "N", "E"].map(|name| size(v, name));
        let flag = |name: &str| v[name].as_bool().unwrap();
        let case = Case {
            m,
            k,
            n,
            e,
            x: ints(&v["x"]),
            w: ints(&v["w_nd"]),
            w_scale: floats(&v["w_scale_bits"]),
            x_scale: floats(&v["x_scale_bits"]),
            list: ints(&v["group_list"]),
            counts: size(v, "group_list_type") == 1,
            arithmetic: size(v, "arithmetic") as i32,
            fp16: flag("fp16_rounding"),
            asymmetric: flag("asymmetric"),
            integers: v.get("bias_i32").map(ints),
            floats: v.get("bias_f32_bits").map(floats),
            offset: v.get("offset_bits").map(floats),
        };
        let name = v["name"].as_str().unwrap();
        // The dequantised matrix is exact.
        let c: Vec<f32> = case
            .groups()
            .into_iter()
            .flat_map(|(e, first, end)| (first..end).map(move |row| (e, row)))
            .flat_map(|(e, row)| case.row(e, row))
            .collect();
        let equal = |a: &[f32], b: &[f32]| a.len() == b.len() && a.iter().zip(b).all(|(&a, &b)| bits(a) == bits(b));
        assert!(equal(&c, &floats(&v["c_bits"])), "{name}: the definition's own matrix");
        let offset: Option<Vec<f32>> =
            v.get("out_offset").map(|v| v.as_array().unwrap().iter().map(|v| v.as_f64().unwrap() as f32).collect());
        every_host(|host| {
            let (result, found) = case.run(host, |_, _| {}, &Layouts::default());
            assert_eq!(result, Ok(()));
            let context = format!("{name} on {}", host.isa().name());
            compare(&found, &ints::<i8>(&v["q"]), &floats(&v["scale_bits"]), offset.as_deref(), &context);
        });
    }
}

/// What the quantisers make of a row, exactly. A gate of 2 * row with an activation whose sigmoid is 1/2 would round; so the rows are
/// given to the definition, and the kernels to the definition.
#[test]
fn grouped_matmul_quantisers_of_rows() {
    for v in file()["quantisers"].as_array().unwrap() {
        let s = floats(&v["s_bits"]);
        let name = v["name"].as_str().unwrap();
        let scale = |key: &str| floats(&Value::Array(vec![v[key].clone()]))[0];
        for (key, arithmetic, fp16) in [("v1_half", 1, true), ("v1", 1, false), ("v2", 2, false)] {
            let (q, found, _) = quantised(&s, arithmetic, fp16, false);
            assert_eq!(q, ints::<i8>(&v[format!("{key}_q")]), "{name} {key}");
            let expected = scale(if arithmetic == 2 { "v2_scale_bits" } else { "v1_scale_bits" });
            assert_eq!(bits(found), bits(expected), "{name} {key}");
        }
        let (q, found, offset) = quantised(&s, 1, false, true);
        assert_eq!((q, bits(found)), (ints(&v["asym_q"]), bits(scale("asym_scale_bits"))), "{name}");
        assert_eq!(f64::from(offset), v["asym_offset"].as_f64().unwrap(), "{name}");
    }
}

/// The same rows and others through the kernels: an activation of 200 has a sigmoid of exactly 1, so `S = 200 * gate`.
#[test]
fn grouped_matmul_quantisers_on_every_instruction_set() {
    let mut random = Random(63);
    let mut rows: Vec<Vec<f32>> = file()["quantisers"].as_array().unwrap().iter().map(|v| floats(&v["s_bits"])).collect();
    rows.extend((0..200).map(|_| (0..1 + random.below(70)).map(|_| random.number()).collect()));
    for row in rows {
        let values: Vec<f32> = row.iter().map(|_| 128.0).chain(row.iter().map(|s| s / 128.0)).collect();
        let s: Vec<f32> = values[row.len()..].iter().map(|gate| 128.0 * gate).collect();
        for (quantiser, arithmetic, fp16, asymmetric) in [
            (Quantiser::Reciprocal, 1, false, false),
            (Quantiser::Half, 1, true, false),
            (Quantiser::Division, 2, false, false),
            (Quantiser::Asymmetric, 1, false, true),
        ] {
            let (expected, scale, offset) = quantised(&s, arithmetic, fp16, asymmetric);
            for level in Isa::ALL.into_iter().filter_map(Level::new) {
                let (mut stage, mut q) = (vec![0.0; row.len()], vec![99; row.len()]);
                let found = level.run(SwigluQuant { values: &values, quantiser, stage: &mut stage, output: &mut q });
                assert_eq!((&q, found.map(bits)), (&expected, [bits(scale), bits(offset)]), "{quantiser:?} {level:?} {s:?}");
            }
        }
    }
}
