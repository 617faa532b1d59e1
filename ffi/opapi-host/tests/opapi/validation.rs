//! What phase one refuses, and with which code. Nothing here has memory: the first phase looks at descriptions alone.

use crate::common::{acl, message};
use crate::device::{Session, Tensor, View, phase_one};
use core::ptr::null_mut;
use tilekern_acl::*;

/// Named descriptions; without one the parameter is null.
#[derive(Clone)]
struct Parameters(Vec<(&'static str, Option<View>)>);

/// Their handles.
struct Handles(Vec<(&'static str, Option<Tensor>)>);

impl Parameters {
    fn new(all: &[(&'static str, &[i64], aclDataType)]) -> Parameters {
        Parameters(all.iter().map(|&(name, shape, dtype)| (name, Some(View::contiguous(shape, dtype)))).collect())
    }

    /// The same with another description; a name that is new is one more.
    fn with(&self, name: &'static str, view: Option<View>) -> Parameters {
        let mut changed = self.clone();
        changed.0.retain(|(known, _)| *known != name);
        changed.0.push((name, view));
        changed
    }

    fn shaped(&self, name: &'static str, shape: &[i64]) -> Parameters {
        let dtype = self.view(name).dtype;
        self.with(name, Some(View::contiguous(shape, dtype)))
    }

    fn typed(&self, name: &'static str, dtype: aclDataType) -> Parameters {
        let view = View { dtype, ..self.view(name) };
        self.with(name, Some(view))
    }

    fn without(&self, name: &'static str) -> Parameters {
        self.with(name, None)
    }

    fn view(&self, name: &str) -> View {
        self.0.iter().find(|(known, _)| *known == name).unwrap().1.clone().unwrap()
    }

    fn describe(&self) -> Handles {
        Handles(self.0.iter().map(|(name, view)| (*name, view.as_ref().map(|view| view.describe(null_mut())))).collect())
    }
}

impl Handles {
    /// Null for a parameter that is not there.
    fn get(&self, name: &str) -> *mut aclTensor {
        let found = self.0.iter().find(|(known, _)| *known == name).and_then(|(_, tensor)| tensor.as_ref());
        found.map_or(null_mut(), |tensor| tensor.0)
    }
}

/// The status of phase one; an executor that it made is destroyed.
fn status(call: impl FnOnce(*mut u64, *mut *mut aclOpExecutor) -> i32) -> i32 {
    match phase_one(call) {
        Ok(call) => acl!(meta::aclDestroyAclOpExecutor(call.executor)),
        Err(status) => {
            assert!(message().ends_with(&format!("({status} {})", codes::name(status))));
            status
        }
    }
}

/// Each case, and the code it is refused with.
fn table(begin: impl Fn(&Parameters) -> i32, cases: Vec<(&str, Parameters, i32)>) {
    for (what, parameters, expected) in cases {
        assert_eq!(begin(&parameters), expected, "{what}");
    }
}

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
    let _session = Session::new();
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
    let _session = Session::new();
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
    let _session = Session::new();
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

#[test]
fn multinomial() {
    let _session = Session::new();
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
        ],
    );
}

#[test]
fn stateless_exponential() {
    let _session = Session::new();
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
            ("a seed of rank 2", good.shaped("seed", &[1, 1]), 161002),
        ],
    );
    assert_eq!(begin(&good, 0.0), 161002);
    assert_eq!(begin(&good, f64::NAN), 161002);
}

#[test]
fn gather() {
    let _session = Session::new();
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
            ("half a byte", good.typed("self", ACL_INT4).typed("out", ACL_INT4), 161002),
        ],
    );
    assert_eq!([-3, -2, -1, 0, 1, 2].map(|dim| begin(&shapes(&[2, 4]), dim)), [161002, 0, 0, 0, 0, 161002]);
}

/// Rows, columns, experts.
const GROUPED: [i64; 4] = [6, 32, 64, 3];

fn grouped_parameters([m, k, n, e]: [i64; 4], weight: View) -> Parameters {
    let base = Parameters::new(&[
        ("x", &[m, k], ACL_INT8),
        ("weightScale", &[e, n], ACL_FLOAT),
        ("xScale", &[m], ACL_FLOAT),
        ("groupList", &[e], ACL_INT64),
        ("output", &[m, n / 2], ACL_INT8),
        ("outputScale", &[m], ACL_FLOAT),
    ]);
    base.with("weight", Some(weight))
}

/// A weight of int8 in blocks; its view has five dimensions, or three.
fn blocks([_, k, n, e]: [i64; 4], plain: bool) -> View {
    let (flat, storage) = ([e, k, n], [e, n / 32, k / 16, 16, 32]);
    let view = View::contiguous(if plain { &flat[..] } else { &storage[..] }, ACL_INT8);
    View { format: ACL_FORMAT_FRACTAL_NZ, storage: storage.to_vec(), ..view }
}

fn grouped(p: &Parameters, nz: bool) -> i32 {
    let t = p.describe();
    let [x, w, b, o, ws, xs, l] = ["x", "weight", "bias", "offset", "weightScale", "xScale", "groupList"].map(|name| t.get(name));
    let [out, scale, offset] = ["output", "outputScale", "outputOffset"].map(|name| t.get(name));
    status(|s, e| match nz {
        false => acl!(operators::aclnnGroupedMatmulSwigluQuantGetWorkspaceSize(x, w, b, o, ws, xs, l, out, scale, offset, s, e)),
        true => acl!(operators::aclnnGroupedMatmulSwigluQuantWeightNZGetWorkspaceSize(
            x, w, b, o, ws, xs, l, out, scale, offset, s, e
        )),
    })
}

#[test]
fn grouped_matmul() {
    let _session = Session::new();
    let good = grouped_parameters(GROUPED, blocks(GROUPED, false));
    let sized = |sizes| grouped_parameters(sizes, blocks(sizes, false));
    let weight = |change: &dyn Fn(&mut View)| {
        let mut view = blocks(GROUPED, true);
        change(&mut view);
        good.with("weight", Some(view))
    };
    let mut both = vec![
        ("five dimensions", good.clone(), 0),
        ("three dimensions", weight(&|_| {}), 0),
        ("fewer groups than experts", good.shaped("groupList", &[2]), 0),
        ("no rows", sized([0, 32, 64, 3]), 0),
        ("scales of f16", good.typed("weightScale", ACL_FLOAT16), 0),
        ("scales of bf16", good.typed("weightScale", ACL_BF16), 0),
        ("x of rank 3", good.shaped("x", &[1, 6, 32]), 161002),
        ("a weight of rank 4", good.shaped("weight", &[3, 2, 2, 512]), 161002),
        ("another K", good.shaped("x", &[6, 48]), 161002),
        ("other experts", good.shaped("weightScale", &[2, 64]), 161002),
        ("another N", good.shaped("weightScale", &[3, 96]), 161002),
        ("more groups than experts", good.shaped("groupList", &[4]), 161002),
        ("a group list of rank 2", good.shaped("groupList", &[3, 1]), 161002),
        ("other rows", good.shaped("xScale", &[5]), 161002),
        ("an output of N columns", good.shaped("output", &[6, 64]), 161002),
        ("other scales", good.shaped("outputScale", &[7]), 161002),
        ("N = 10240", sized([1, 16, 10240, 1]), 0),
        ("N > 10240", sized([1, 16, 10304, 1]), 161002),
        ("K = 65520", sized([1, 65520, 32, 1]), 0),
        ("K = 65536", sized([1, 65536, 32, 1]), 161002),
        ("x not int8", good.typed("x", ACL_UINT8), 161002),
        ("a float weight", good.typed("weight", ACL_FLOAT16), 161002),
        ("scales of f64", good.typed("weightScale", ACL_DOUBLE), 161002),
        ("row scales of f16", good.typed("xScale", ACL_FLOAT16), 161002),
        ("a group list of i32", good.typed("groupList", ACL_INT32), 161002),
        ("an output of f32", good.typed("output", ACL_FLOAT), 161002),
        ("N not in blocks", weight(&|view| view.shape = vec![3, 32, 48]), 161002),
        ("K not in blocks", weight(&|view| view.shape = vec![3, 40, 64]), 161002),
        ("a view that is not contiguous", weight(&|view| view.strides = vec![2048, 1, 32]), 161002),
        ("another storage", weight(&|view| view.storage = vec![3, 2, 2, 16, 16]), 161002),
        ("a bias", good.with("bias", Some(View::contiguous(&[3, 64], ACL_INT32))), 161002),
        ("an offset", good.with("offset", Some(View::contiguous(&[3, 64], ACL_FLOAT))), 161002),
        ("an offset to write", good.with("outputOffset", Some(View::contiguous(&[6], ACL_FLOAT))), 161002),
    ];
    for name in ["x", "weight", "weightScale", "xScale", "groupList", "output", "outputScale"] {
        both.push((name, good.without(name), 161001));
    }
    table(|p| grouped(p, false), both.clone());
    table(|p| grouped(p, true), both);
    // Whose word the format is.
    let nd = weight(&|view| view.format = ACL_FORMAT_ND);
    assert_eq!([grouped(&nd, false), grouped(&nd, true)], [161002, 0]);
    let flat = weight(&|view| view.storage = vec![3, 32, 64]);
    assert_eq!([grouped(&flat, false), grouped(&flat, true)], [0, 161002]);
}

#[test]
fn grouped_matmul_of_four_bits() {
    let _session = Session::new();
    let [m, k, n, e] = GROUPED;
    let plain = View::contiguous(&[e, k, n], ACL_INT4);
    let good = grouped_parameters(GROUPED, plain.clone())
        .with("weightScale", Some(View::contiguous(&[e, n], ACL_UINT64)))
        .with("bias", Some(View::contiguous(&[e, n], ACL_FLOAT)));
    let carrier = |shape: &[i64], format| View { format, ..View::contiguous(shape, ACL_INT32) };
    let nz = View { format: ACL_FORMAT_FRACTAL_NZ, ..View::contiguous(&[e, n / 64, k / 16, 16, 64], ACL_INT4) };
    let long = grouped_parameters([m, 20000, n, e], View::contiguous(&[e, 20000, n], ACL_INT4))
        .with("weightScale", Some(View::contiguous(&[e, n], ACL_UINT64)))
        .with("bias", Some(View::contiguous(&[e, n], ACL_FLOAT)));
    table(
        |p| grouped(p, false),
        vec![
            ("plain", good.clone(), 0),
            ("blocks", good.with("weight", Some(nz)), 0),
            ("eight to an int32", good.with("weight", Some(carrier(&[e, k, n / 8], ACL_FORMAT_ND))), 0),
            ("eight to an int32, in blocks", good.with("weight", Some(carrier(&[e, 1, 2, 16, 8], ACL_FORMAT_FRACTAL_NZ))), 0),
            ("scales of i64", good.typed("weightScale", ACL_INT64), 0),
            ("scales of groups", good.with("weightScale", Some(View::contiguous(&[e, 4, n], ACL_UINT64))), 0),
            ("groups that do not divide K", good.with("weightScale", Some(View::contiguous(&[e, 5, n], ACL_UINT64))), 161002),
            ("no assist matrix", good.without("bias"), 161001),
            (
                "no assist matrix for an int32",
                good.with("weight", Some(carrier(&[e, k, n / 8], ACL_FORMAT_ND))).without("bias"),
                161001,
            ),
            ("an assist matrix of integers", good.typed("bias", ACL_INT32), 161002),
            ("float scales", good.typed("weightScale", ACL_FLOAT), 161002),
            ("an odd stride", good.with("weight", Some(View { strides: vec![2048, 65, 1], ..plain.clone() })), 161002),
            ("K = 20000", long, 161002),
        ],
    );
}

#[derive(Clone, Copy)]
struct Modes {
    dequant: i64,
    dtype: i64,
    quant: i64,
    list: i64,
}

fn list(tensors: &[*mut aclTensor]) -> *mut aclTensorList {
    let list = acl!(meta::aclCreateTensorList(tensors.as_ptr().cast(), tensors.len() as u64));
    assert!(!list.is_null());
    list
}

/// The second version; `weights` says of how many tensors its lists are.
fn grouped_v2(p: &Parameters, nz: bool, weights: usize, modes: Modes) -> i32 {
    let mut t = p.describe();
    let [x, b, xs, smooth, l] = ["x", "bias", "xScale", "smoothScale", "groupList"].map(|name| t.get(name));
    let [out, scale] = ["output", "outputScale"].map(|name| t.get(name));
    let mut lists = Vec::new();
    for name in ["weight", "weightScale"] {
        let members: Vec<_> = (0..weights).map(|_| p.view(name).describe(null_mut())).collect();
        lists.push(list(&members.iter().map(|member| member.0).collect::<Vec<_>>()));
        // The list owns them.
        members.into_iter().for_each(core::mem::forget);
    }
    t.0.retain(|(name, _)| !name.starts_with("weight"));
    let Modes { dequant, dtype, quant, list } = modes;
    let (w, ws, none, tuning) = (lists[0], lists[1], core::ptr::null(), core::ptr::null());
    let answer = status(|s, e| match nz {
        false => acl!(operators::aclnnGroupedMatmulSwigluQuantV2GetWorkspaceSize(
            x, w, ws, none, b, xs, smooth, l, dequant, dtype, quant, list, tuning, out, scale, s, e
        )),
        true => acl!(operators::aclnnGroupedMatmulSwigluQuantWeightNzV2GetWorkspaceSize(
            x, w, ws, none, b, xs, smooth, l, dequant, dtype, quant, list, tuning, out, scale, s, e
        )),
    });
    for list in lists {
        assert_eq!(acl!(meta::aclDestroyTensorList(list)), 0);
    }
    answer
}

#[test]
fn grouped_matmul_v2() {
    let _session = Session::new();
    let good = grouped_parameters(GROUPED, blocks(GROUPED, false));
    let plain = Modes { dequant: 0, dtype: 0, quant: 0, list: 0 };
    let [_, k, n, _] = GROUPED;
    let one = View { format: ACL_FORMAT_FRACTAL_NZ, ..View::contiguous(&[n / 32, k / 16, 16, 32], ACL_INT8) };
    let each = good.with("weight", Some(one)).shaped("weightScale", &[n]);
    for nz in [false, true] {
        assert_eq!(grouped_v2(&good, nz, 1, plain), 0, "{}", message());
        assert_eq!(grouped_v2(&each, nz, 3, plain), 0, "{}", message());
        assert_eq!(grouped_v2(&good, nz, 1, Modes { list: 1, ..plain }), 0);
        assert_eq!(grouped_v2(&good, nz, 1, Modes { list: 2, ..plain }), 161002);
        assert_eq!(grouped_v2(&good, nz, 1, Modes { dequant: 2, ..plain }), 161002);
        assert_eq!(grouped_v2(&good, nz, 1, Modes { dtype: 5, ..plain }), 161002);
        assert_eq!(grouped_v2(&good, nz, 1, Modes { quant: 1, ..plain }), 161002);
        assert_eq!(grouped_v2(&each, nz, 2, plain), 161002, "a group list of three");
        assert_eq!(grouped_v2(&good.with("bias", Some(View::contiguous(&[3, 64], ACL_FLOAT))), nz, 1, plain), 161002);
        assert_eq!(grouped_v2(&good.with("smoothScale", Some(View::contiguous(&[3], ACL_FLOAT))), nz, 1, plain), 161002);
        assert_eq!(grouped_v2(&good.without("x"), nz, 1, plain), 161001);
        assert_eq!(grouped_v2(&good.without("groupList"), nz, 1, plain), 161001);
        assert_eq!(grouped_v2(&good.without("output"), nz, 1, plain), 161001);
        assert_eq!(grouped_v2(&good.typed("x", ACL_INT4), nz, 1, plain), 161002);
    }
}
