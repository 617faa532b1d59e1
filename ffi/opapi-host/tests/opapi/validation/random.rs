//! Multinomial, StatelessExponential and Gather.

use super::{Parameters, status, table};
use crate::common::acl;
use crate::device::{Open, View};
use tilekern_acl::*;

#[test]
fn multinomial() {
    let _open = Open::new();
    let shaped = |dtype, from: &[i64], to: &[i64]| Parameters::new(&[("self", from, dtype), ("out", to, ACL_INT64)]);
    let begin = |p: &Parameters, n: i64, replacement: bool| {
        let t = p.describe();
        let (from, out) = (t.get("self"), t.get("out"));
        status(|s, e| acl!(operators::aclnnMultinomialGetWorkspaceSize(from, n, replacement, 1, 0, out, s, e)))
    };
    let good = shaped(ACL_FLOAT, &[2, 4], &[2, 3]);
    for dtype in [ACL_FLOAT, ACL_FLOAT16, ACL_BF16, ACL_DOUBLE] {
        assert_eq!(begin(&shaped(dtype, &[2, 4], &[2, 3]), 3, false), 0);
        assert_eq!(begin(&shaped(dtype, &[4], &[3]), 3, true), 0);
    }
    table(
        |p| begin(p, 3, false),
        vec![
            ("no weights", good.without("self"), 161001),
            ("no out", good.without("out"), 161001),
            ("another dtype", good.typed("self", ACL_INT32), 161002),
            ("out not i64", good.typed("out", ACL_INT32), 161002),
            ("rank 3", good.shaped("self", &[1, 2, 4]), 161002),
            ("another rank", good.shaped("out", &[3]), 161002),
            ("another width", good.shaped("out", &[2, 2]), 161002),
            ("other rows", good.shaped("out", &[3, 3]), 161002),
            ("more samples than columns", good.shaped("self", &[2, 2]), 161002),
            ("no rows", shaped(ACL_FLOAT, &[0, 4], &[0, 3]), 0),
            ("2^24 columns", shaped(ACL_FLOAT, &[1, 1 << 24], &[1, 3]), 0),
            ("more", shaped(ACL_FLOAT, &[1, (1 << 24) + 1], &[1, 3]), 161002),
        ],
    );
    assert_eq!(begin(&shaped(ACL_FLOAT, &[2, 4], &[2, 5]), 5, false), 161002);
    assert_eq!(begin(&shaped(ACL_FLOAT, &[2, 4], &[2, 5]), 5, true), 0);
    assert_eq!(begin(&shaped(ACL_FLOAT, &[2, 4], &[2, 0]), 0, true), 161002);
    assert_eq!(begin(&good, -1, true), 161002);
    // Seed and offset in tensors.
    let tensors = Parameters::new(&[
        ("self", &[2, 4], ACL_FLOAT),
        ("out", &[2, 1], ACL_INT64),
        ("seed", &[1], ACL_INT64),
        ("offset", &[1], ACL_INT64),
    ]);
    table(
        |p| {
            let t = p.describe();
            let [from, out, seed, offset] = ["self", "out", "seed", "offset"].map(|name| t.get(name));
            status(|s, e| acl!(operators::aclnnMultinomialTensorGetWorkspaceSize(from, 1, true, seed, offset, 4, out, s, e)))
        },
        vec![
            ("as it should be", tensors.clone(), 0),
            ("no seed", tensors.without("seed"), 161001),
            ("no offset", tensors.without("offset"), 161001),
            ("a seed not i64", tensors.typed("seed", ACL_INT32), 161002),
            ("two offsets", tensors.shaped("offset", &[2]), 161002),
            ("one offset of rank 0", tensors.shaped("offset", &[]), 0),
            ("one seed of rank 2", tensors.shaped("seed", &[1, 1]), 0),
            ("no seed in its tensor", tensors.shaped("seed", &[0]), 161002),
        ],
    );
}

#[test]
fn stateless_exponential() {
    let _open = Open::new();
    let good = Parameters::new(&[("self", &[2, 4], ACL_FLOAT), ("seed", &[1], ACL_INT64), ("offset", &[1], ACL_INT64)]);
    let begin = |p: &Parameters, rate: f64| {
        let t = p.describe();
        let [values, seed, offset] = ["self", "seed", "offset"].map(|name| t.get(name));
        status(|s, e| acl!(operators::aclnnStatelessExponentialTensorGetWorkspaceSize(values, seed, offset, 0, rate, s, e)))
    };
    table(
        |p| begin(p, 1.0),
        vec![
            ("f32", good.clone(), 0),
            ("bf16", good.typed("self", ACL_BF16), 0),
            ("no elements", good.shaped("self", &[2, 0]), 0),
            ("no tensor", good.without("self"), 161001),
            ("no seed", good.without("seed"), 161001),
            ("another dtype", good.typed("self", ACL_DOUBLE), 161002),
            ("a seed not i64", good.typed("seed", ACL_UINT64), 161002),
            ("two seeds", good.shaped("seed", &[1, 2]), 161002),
        ],
    );
    assert_eq!(begin(&good, 0.0), 161002);
    assert_eq!(begin(&good, f64::NAN), 161002);
}

#[test]
fn gather() {
    let _open = Open::new();
    let good = Parameters::new(&[("self", &[3, 5], ACL_BF16), ("index", &[2, 7], ACL_INT64), ("out", &[2, 7], ACL_BF16)]);
    let begin = |p: &Parameters, dim: i64| {
        let t = p.describe();
        let [from, index, out] = ["self", "index", "out"].map(|name| t.get(name));
        status(|s, e| acl!(operators::aclnnGatherGetWorkspaceSize(from, dim, index, out, s, e)))
    };
    let shapes = |shape: &[i64]| good.shaped("index", shape).shaped("out", shape);
    table(
        |p| begin(p, 1),
        vec![
            ("as it should be", good.clone(), 0),
            ("an index of i32", good.typed("index", ACL_INT32), 0),
            ("no elements", shapes(&[0, 7]), 0),
            ("no self", good.without("self"), 161001),
            ("no index", good.without("index"), 161001),
            ("no out", good.without("out"), 161001),
            ("an index of another dtype", good.typed("index", ACL_INT16), 161002),
            ("out of another dtype", good.typed("out", ACL_FLOAT16), 161002),
            ("an index of another rank", good.shaped("index", &[14]), 161002),
            ("out of another shape", good.shaped("out", &[2, 6]), 161002),
            ("more rows than self", shapes(&[4, 7]), 161002),
            ("no columns", shapes(&[2, 0]), 0),
            ("out with gaps, turned", good.with("out", Some(View { strides: vec![2, 5], ..good.view("out") })), 0),
            ("out on top of itself", good.with("out", Some(View { strides: vec![0, 1], ..good.view("out") })), 161002),
            ("rows on top of rows", good.with("out", Some(View { strides: vec![6, 1], ..good.view("out") })), 161002),
            ("columns on top of rows", good.with("out", Some(View { strides: vec![1, 1], ..good.view("out") })), 161002),
            ("half a byte", good.typed("self", ACL_INT4).typed("out", ACL_INT4), 161002),
        ],
    );
    assert_eq!([-3, -2, -1, 0, 1, 2].map(|dim| begin(&shapes(&[2, 4]), dim)), [161002, 0, 0, 0, 0, 161002]);
}
