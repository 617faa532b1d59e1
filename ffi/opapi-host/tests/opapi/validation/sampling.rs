//! TopKTopPSample and ApplyTopKTopP.

use super::{Parameters, status, table};
use crate::common::acl;
use crate::device::{Open, View};
use core::ptr::null_mut;
use tilekern_acl::*;

#[derive(Clone, Copy)]
struct SampleV2 {
    eps: f64,
    need_logits: bool,
    need_sample: bool,
}

fn sample_v2(p: &Parameters, a: SampleV2) -> i32 {
    let t = p.describe();
    status(|s, e| {
        acl!(operators::aclnnTopKTopPSampleV2GetWorkspaceSize(
            t.get("logits"),
            t.get("topK"),
            t.get("topP"),
            t.get("q"),
            t.get("minPs"),
            a.eps,
            a.need_logits,
            32,
            1024,
            true,
            a.need_sample,
            t.get("index"),
            t.get("select"),
            t.get("places"),
            t.get("sorted"),
            s,
            e,
        ))
    })
}

fn sampling(dtype: aclDataType, [b, v]: [i64; 2]) -> Parameters {
    Parameters::new(&[
        ("logits", &[b, v], dtype),
        ("topK", &[b], ACL_INT32),
        ("topP", &[b], dtype),
        ("q", &[b, v], ACL_FLOAT),
        ("minPs", &[b], dtype),
        ("index", &[b], ACL_INT64),
        ("select", &[b, v], ACL_FLOAT),
        ("places", &[b, v], ACL_INT64),
        ("sorted", &[b, v], ACL_FLOAT),
    ])
}

#[test]
fn top_k_top_p_sample_v2() {
    let _open = Open::new();
    let all = SampleV2 { eps: 1e-8, need_logits: true, need_sample: false };
    let middle = SampleV2 { need_sample: true, ..all };
    for dtype in [ACL_FLOAT, ACL_FLOAT16, ACL_BF16] {
        let good = sampling(dtype, [3, 50]);
        assert_eq!(sample_v2(&good, all), 0);
        assert_eq!(sample_v2(&good.without("q").without("minPs"), all), 0);
        assert_eq!(sample_v2(&good.without("q"), middle), 0);
    }
    let good = sampling(ACL_FLOAT16, [3, 50]);
    let mut cases = Vec::new();
    for name in ["logits", "topK", "topP", "index", "select", "places", "sorted"] {
        cases.push((name, good.without(name), 161001));
    }
    cases.extend([
        ("a dtype that is none of the three", good.typed("logits", ACL_DOUBLE), 161002),
        ("topP of another dtype", good.typed("topP", ACL_FLOAT), 161002),
        ("minPs of another dtype", good.typed("minPs", ACL_FLOAT), 161002),
        ("q not f32", good.typed("q", ACL_FLOAT16), 161002),
        ("topK not i32", good.typed("topK", ACL_INT64), 161002),
        ("logits of rank 1", good.shaped("logits", &[50]), 161002),
        ("logits of rank 3", good.shaped("logits", &[3, 50, 1]), 161002),
        ("topK of rank 2", good.shaped("topK", &[3, 1]), 161002),
        ("topP of rank 2", good.shaped("topP", &[3, 1]), 161002),
        ("minPs of rank 2", good.shaped("minPs", &[3, 1]), 161002),
        ("topK of another B", good.shaped("topK", &[4]), 161002),
        ("topP of another B", good.shaped("topP", &[2]), 161002),
        ("minPs of another B", good.shaped("minPs", &[2]), 161002),
        ("q of another shape", good.shaped("q", &[3, 49]), 561002),
        ("an index of another shape", good.shaped("index", &[4]), 161002),
        ("an index of rank 2", good.shaped("index", &[3, 1]), 161002),
        ("an index not i64", good.typed("index", ACL_INT32), 161002),
        ("select of another shape", good.shaped("select", &[3, 51]), 161002),
        ("select not f32", good.typed("select", ACL_FLOAT16), 161002),
        ("unused outputs of any shape", good.shaped("places", &[1]).typed("sorted", ACL_INT8), 0),
        ("B = 0", sampling(ACL_FLOAT16, [0, 50]), 161002),
        ("V = 0", sampling(ACL_FLOAT16, [3, 0]), 161002),
        ("V = 2^20", sampling(ACL_FLOAT16, [1, 1 << 20]), 0),
        ("V > 2^20", sampling(ACL_FLOAT16, [1, (1 << 20) + 1]), 561002),
        ("a blocked format", good.with("logits", Some(View { format: ACL_FORMAT_FRACTAL_NZ, ..good.view("logits") })), 161002),
        ("negative strides", good.with("logits", Some(View { strides: vec![-50, 1], ..good.view("logits") })), 161002),
        ("a negative offset", good.with("logits", Some(View { offset: -1, ..good.view("logits") })), 161002),
    ]);
    table(|p| sample_v2(p, all), cases);
    table(
        |p| sample_v2(p, middle),
        vec![
            ("q together with the middle result", good.clone(), 561002),
            ("both, and q not f32", good.typed("q", ACL_FLOAT16), 161002),
            ("both, and topK of another B", good.shaped("topK", &[4]), 161002),
            ("places of another shape", good.without("q").shaped("places", &[3, 49]), 161002),
            ("sorted not f32", good.without("q").typed("sorted", ACL_FLOAT16), 161002),
            ("an unused index of any shape", good.without("q").shaped("index", &[9, 9]), 0),
        ],
    );
    assert_eq!(sample_v2(&good.shaped("select", &[7]), SampleV2 { need_logits: false, ..all }), 0, "select is not written");
    assert_eq!(sample_v2(&good, SampleV2 { eps: f64::NAN, ..all }), 161002);
    // Nowhere to answer to.
    let t = good.describe();
    for places in [[true, false], [false, true]] {
        let (mut size, mut executor) = (0, null_mut());
        let size: *mut u64 = if places[0] { &mut size } else { null_mut() };
        let executor: *mut *mut aclOpExecutor = if places[1] { &mut executor } else { null_mut() };
        let (logits, p, k, out) = (t.get("logits"), t.get("topP"), t.get("topK"), t.get("select"));
        assert_eq!(acl!(operators::aclnnApplyTopKTopPGetWorkspaceSize(logits, p, k, out, size, executor)), 161001);
    }
}

fn sample_v1(p: &Parameters) -> i32 {
    let t = p.describe();
    let [logits, k, p, q, index, select] = ["logits", "topK", "topP", "q", "index", "select"].map(|name| t.get(name));
    status(|s, e| acl!(operators::aclnnTopKTopPSampleGetWorkspaceSize(logits, k, p, q, 1e-8, false, 32, index, select, s, e)))
}

#[test]
fn top_k_top_p_sample_v1() {
    let _open = Open::new();
    let good = sampling(ACL_BF16, [3, 50]);
    let mut cases = vec![
        ("as it should be", good.clone(), 0),
        ("f16", sampling(ACL_FLOAT16, [3, 50]), 0),
        ("without q", good.without("q"), 0),
        ("f32, which the device lacks", sampling(ACL_FLOAT, [3, 50]), 161002),
        ("topP of another dtype", good.typed("topP", ACL_FLOAT16), 161002),
        ("topK not i32", good.typed("topK", ACL_INT64), 161002),
        ("q of another shape", good.shaped("q", &[3, 49]), 161002),
        ("topK of rank 2", good.shaped("topK", &[3, 1]), 161002),
        ("select of another shape, though it is not written", good.shaped("select", &[3, 49]), 161002),
        ("select not f32, though it is not written", good.typed("select", ACL_BF16), 161002),
        ("an index not i64", good.typed("index", ACL_INT32), 161002),
        ("an index of another B", good.shaped("index", &[2]), 161002),
        ("B = 0", sampling(ACL_BF16, [0, 50]), 161002),
        ("V > 2^20", sampling(ACL_BF16, [1, (1 << 20) + 1]), 561002),
    ];
    for name in ["logits", "topK", "topP", "index", "select"] {
        cases.push((name, good.without(name), 161001));
    }
    table(sample_v1, cases);
}

fn apply(p: &Parameters) -> i32 {
    let t = p.describe();
    let [logits, p, k, out] = ["logits", "p", "k", "out"].map(|name| t.get(name));
    status(|s, e| acl!(operators::aclnnApplyTopKTopPGetWorkspaceSize(logits, p, k, out, s, e)))
}

#[test]
fn apply_top_k_top_p() {
    let _open = Open::new();
    let shaped = |dtype, b, v| {
        Parameters::new(&[("logits", &[b, v], dtype), ("p", &[b], dtype), ("k", &[b], ACL_INT32), ("out", &[b, v], dtype)])
    };
    let good = shaped(ACL_FLOAT, 3, 9);
    let nchw = |name| good.with(name, Some(View { format: ACL_FORMAT_NCHW, ..good.view(name) }));
    table(
        apply,
        vec![
            ("f32", good.clone(), 0),
            ("f16", shaped(ACL_FLOAT16, 3, 9), 0),
            ("bf16", shaped(ACL_BF16, 3, 9), 0),
            ("p alone", good.without("k"), 0),
            ("k alone", good.without("p"), 0),
            ("no rows", shaped(ACL_FLOAT, 0, 9), 0),
            ("no logits", good.without("logits"), 161001),
            ("no out", good.without("out"), 161001),
            ("neither p nor k", good.without("p").without("k"), 161001),
            ("another dtype", shaped(ACL_DOUBLE, 3, 9), 161002),
            ("p of another dtype", good.typed("p", ACL_FLOAT16), 161002),
            ("k not i32", good.typed("k", ACL_INT64), 161002),
            ("out of another dtype", good.typed("out", ACL_BF16), 161002),
            ("out of another shape", good.shaped("out", &[3, 8]), 161002),
            ("logits of rank 1", good.shaped("logits", &[27]), 161002),
            ("p of rank 2", good.shaped("p", &[3, 1]), 161002),
            ("k of another B", good.shaped("k", &[4]), 161002),
            ("logits not ND", nchw("logits"), 161002),
            ("p not ND", nchw("p"), 161002),
            ("out not ND", nchw("out"), 161002),
        ],
    );
}
