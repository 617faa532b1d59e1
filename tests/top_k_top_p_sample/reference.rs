//! 20 000 rows against the operator's numpy reference.
//!
//! The rows come from SplitMix64 here and in `reference.py`, with numbers that are exact in every dtype. Where python3 with numpy and
//! the reference are there (`TILEKERN_REFERENCE` names its folder, `PYTHON` the interpreter), every token, every list and every
//! probability is compared with its answers; everywhere the digest of the answers is compared with the committed one.

use crate::common::Order;
use crate::common::sampling::{Answer, Case, Q};
use half::{bf16, f16};
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use tilekern::Host;
use tilekern::ops::PostSample;
use tilekern_kernels::element::Element;

const CALLS: u64 = 5000;
const ROWS: usize = 4;
const SIZES: [usize; 24] = [1, 2, 3, 5, 8, 11, 16, 17, 24, 31, 33, 48, 50, 64, 64, 65, 100, 100, 128, 150, 257, 300, 1000, 1100];

/// Of chosen tokens and lists: FNV-1a, 64 bits.
const DIGEST: u64 = 0x981A_5CC7_58AC_8B63;

/// Number `n` of the call's part of SplitMix64 from 0.
fn stream(call: u64, n: u64) -> u64 {
    let z = ((call << 32) + n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn fraction(h: u64, dtype: usize) -> f64 {
    (h & [0xFF_FFFF, 0x3FF, 0xFF][dtype]) as f64 / [16_777_216.0, 1024.0, 256.0][dtype]
}

/// Element j of a row of a kind, from its random number.
fn logit(x: u64, j: usize, v: usize, dtype: usize, kind: u64, is_logits: bool) -> f64 {
    if !is_logits {
        let bits = (v as u32 - 1).checked_ilog2().map_or(0, |b| b + 1) as i32;
        let k = x & if kind == 1 { 7 } else { 0xFF } | u64::from(j == 0);
        return if kind == 2 { 2f64.powi(-bits) } else { k as f64 * 2f64.powi(-7 - bits) };
    }
    let (mask, half, scale) = [(0xFF_FFFF, 1 << 23, -20), (0xFFF, 1 << 11, -8), (0x1FF, 1 << 8, -5)][dtype];
    let fine = ((x & mask) as i64 - half) as f64 * 2f64.powi(scale);
    match kind {
        1 => ((x & 15) as f64 - 8.0) / 2.0,
        2 => 1.5,
        3 if j > 0 && x >> 60 < 10 => f64::NEG_INFINITY,
        4 => fine * 8.0,
        _ => fine,
    }
}

fn case<T: Element + std::fmt::Debug>(call: u64) -> Case<T> {
    let h = |n| stream(call, n);
    let v = if call % 250 == 0 { 5000 } else { SIZES[(h(0) % 24) as usize] };
    let (dtype, is_logits, kind) = ((call % 3) as usize, h(1) % 4 != 0, h(2) % 5);
    let elements = || (0..ROWS * v).map(|i| (i, i % v));
    let number = |(i, j)| T::narrow(logit(h(1024 + i as u64), j, v, dtype, kind, is_logits) as f32);
    let mut case = Case::new(v, elements().map(number).collect());
    for row in 0..ROWS {
        let [a, b, c] = [0, 1, 2].map(|n| h(64 + 8 * row as u64 + n));
        let base = (a & 0xFFFF_FFFF) as usize;
        case.top_k[row] = match a >> 62 {
            0 => 0,
            1 => (base % (v + 3)) as i32 - 1,
            _ => (1 + base % v.min(40)) as i32,
        };
        let p = [0.0, 1.0, -0.5, 1.5].get((b >> 61) as usize).copied().unwrap_or(fraction(b, dtype));
        case.top_p[row] = T::narrow(p as f32);
        let f = fraction(c, dtype) / if c >> 61 >= 5 { 8.0 } else { 1.0 };
        let m = [0.0, 1.0, -1.0].get((c >> 61) as usize).copied().unwrap_or(f);
        case.min_ps.get_or_insert_default().push(T::narrow(m as f32));
    }
    if h(5) % 2 == 0 {
        case.min_ps = None;
    }
    case.ks_max = [1024, 1024, 0, 3, 16, 100][(h(6) % 6) as usize];
    case.eps = [1e-8, 1e-3][(h(7) % 2) as usize];
    case.input_is_logits = is_logits;
    let lines = 1 + h(4) % ROWS as u64;
    let pair = |i| [h(16 + 2 * i) as i64, (h(17 + 2 * i) % 1000) as i64];
    match h(3) % 4 {
        0 => case.post_sample = PostSample::None,
        1 => {
            let noise = |(i, _)| {
                let y = h((1 << 24) + i as u64);
                let q = (y & 0xFF_FFFF) as f32 / 4_194_304.0;
                if y >> 63 == 1 { -q } else { q }
            };
            case.q = Q::Exponential(elements().map(noise).collect());
        }
        2 => (case.post_sample, case.generator) = (PostSample::MultiNomial, Some(pair(0))),
        _ => (case.post_sample, case.q) = (PostSample::MultiNomial, Q::Seeds((0..lines).flat_map(pair).collect())),
    }
    case
}

fn answer(call: u64) -> (usize, Answer) {
    let order = [Order::Contiguous, Order::Pitched, Order::Transposed][(call / 3 % 3) as usize];
    fn of<T: Element + std::fmt::Debug>(call: u64, order: Order) -> (usize, Answer) {
        let case = case::<T>(call);
        (case.v, case.answer(&Host::new(), order))
    }
    match call % 3 {
        0 => of::<f32>(call, order),
        1 => of::<f16>(call, order),
        _ => of::<bf16>(call, order),
    }
}

/// The reference at work, if everything that it needs is there.
fn reference() -> Option<std::process::Child> {
    let root = env!("CARGO_MANIFEST_DIR");
    let folder = std::env::var("TILEKERN_REFERENCE").unwrap_or(format!("{root}/../shared/spec"));
    let python = std::env::var("PYTHON").unwrap_or("python3".into());
    let numpy = Command::new(&python).args(["-c", "import numpy"]).stderr(Stdio::null()).status();
    if cfg!(miri) || !numpy.is_ok_and(|s| s.success()) || !std::path::Path::new(&folder).join("ref_sampling.py").exists() {
        return None;
    }
    let script = format!("{root}/tests/top_k_top_p_sample/reference.py");
    Command::new(python).args([&script, &folder, &CALLS.to_string()]).stdout(Stdio::piped()).spawn().ok()
}

/// Compares a row with the reference's; whether a decision differs, by no more than the roundings of an exponential explain.
fn differs(expected: &mut impl Read, v: usize, row: usize, answer: &Answer, call: u64) -> bool {
    let mut bytes = vec![0; 8 + 8 * v];
    expected.read_exact(&mut bytes).expect("an answer of the reference");
    let words: Vec<u32> = bytes.chunks_exact(4).map(|b| u32::from_le_bytes(b.try_into().unwrap())).collect();
    let (tokens, probabilities) = words[2..].split_at(v);
    let found = &answer.idx[row * v..(row + 1) * v];
    let same = answer.chosen[row] == i64::from(words[0]) && found.iter().zip(tokens).all(|(&a, &b)| a == i64::from(b));
    let margin = f32::from_bits(words[1]);
    assert!(same || margin <= 1e-6, "call {call} row {row}: another decision, margin {margin}");
    for (a, b) in answer.sorted[row * v..(row + 1) * v].iter().zip(probabilities) {
        let (a, b) = (f32::from_bits(*a), f32::from_bits(*b));
        assert!(!same || (a - b).abs() <= 1e-6 * b + f32::MIN_POSITIVE, "call {call} row {row}: probability {a}, {b}");
    }
    !same
}

#[test]
fn twenty_thousand_rows() {
    let mut child = reference();
    let mut expected = child.as_mut().and_then(|child| child.stdout.take()).map(std::io::BufReader::new);
    let (mut digest, mut differing) = (0xCBF2_9CE4_8422_2325u64, 0);
    for call in 0..CALLS {
        let (v, answer) = answer(call);
        for row in 0..ROWS {
            let list = &answer.idx[row * v..(row + 1) * v];
            for token in [answer.chosen[row]].iter().chain(list) {
                for byte in (*token as u32).to_le_bytes() {
                    digest = (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
                }
            }
            if let Some(expected) = &mut expected {
                differing += u32::from(differs(expected, v, row, &answer, call));
            }
        }
    }
    let rows = CALLS as usize * ROWS;
    let report = match child.map(|mut child| child.wait()) {
        Some(_) => format!("compared {rows} rows with the numpy reference: {differing} decisions differ, all within 1e-6"),
        None => format!("compared the digest of {rows} rows (python3 with numpy and ref_sampling.py are not there)"),
    };
    // Not through the macros, whose output the test harness keeps for itself.
    let _ = writeln!(std::io::stderr(), "TopKTopPSample: {report}");
    assert_eq!(digest, DIGEST, "{digest:#018X}");
}
