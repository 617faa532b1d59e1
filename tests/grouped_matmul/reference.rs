//! 2 000 calls against the operator's numpy reference, and a case of its specification by checksums.
//!
//! The calls take the forms of a weight in turn. They are made here and, where python3 with numpy and the reference are there
//! (`TILEKERN_REFERENCE` names its folder, `PYTHON` the interpreter), handed to `reference.py` in a file. Everywhere the digest of the
//! answers is compared with the committed one.

use crate::case::{Case, Layouts, Output};
use crate::common::{Random, every_host};
use crate::forms::Form;
use crate::layouts::stripes;
use std::io::Write;
use std::process::{Command, Stdio};
use tilekern::ops::{FORMAT_NZ, GroupedScale, GroupedWeight};
use tilekern::{Host, Tensor};

const CALLS: usize = 2000;

/// Of all answers: FNV-1a, 64 bits.
const DIGEST: u64 = 0xE62A_038E_F5B7_581E;

/// Calls and answers, one after the other, as `reference.py` reads them.
#[derive(Default)]
struct File(Vec<u8>);

impl File {
    fn numbers<T: bytemuck::NoUninit>(&mut self, numbers: &[T]) {
        self.0.extend_from_slice(bytemuck::cast_slice(numbers));
    }

    fn optional<T: bytemuck::NoUninit>(&mut self, numbers: &Option<Vec<T>>) {
        self.numbers(numbers.as_deref().unwrap_or_default());
    }

    /// `groups` is 0 for weights of eight bits.
    fn call(&mut self, case: &Case, groups: usize, scales: &[f32], found: &Output) {
        let sizes = [case.m, case.k, case.n, case.e, case.list.len(), groups].map(|size| size as i32);
        let flags =
            [case.counts, case.fp16, case.asymmetric, case.integers.is_some(), case.floats.is_some(), case.offset.is_some()];
        self.numbers(&sizes);
        self.numbers(&[case.arithmetic]);
        self.numbers(&flags.map(i32::from));
        self.numbers(&case.list);
        self.numbers(scales);
        self.numbers(&case.x_scale);
        self.optional(&case.integers);
        self.optional(&case.floats);
        self.optional(&case.offset);
        self.numbers(&found.scale);
        self.numbers(&found.offset);
        self.numbers(&case.x);
        self.numbers(&case.w);
        self.numbers(&found.q);
    }
}

/// A call with weights of eight bits.
fn eight_bits(number: usize, random: &mut Random, file: &mut File) -> Output {
    let case = Case::random(random);
    let form = Form::of(number, &case, 32);
    let (result, found) = case.run(&Host::new(), |call, layouts| form.set(call, layouts, &case), &form.of_bytes(&case));
    assert_eq!(result, Ok(()));
    file.call(&case, 0, &case.w_scale, &found);
    found
}

/// A call with weights of four bits, in groups of K.
fn four_bits(number: usize, random: &mut Random, file: &mut File) -> Output {
    let mut case = Case::random(random);
    let groups = 1 + random.below(4);
    (case.k, case.n) = (groups * [1, 6, 16, 64, 100][random.below(5)], 2 * case.n);
    let (e, k, n) = (case.e, case.k, case.n);
    case.x = (0..case.m * k).map(|_| random.int8()).collect();
    case.w = (0..e * k * n).map(|_| random.int8() >> 4).collect();
    case.floats = Some((0..e * n).map(|_| random.unit()).collect());
    case.w_scale = vec![0.0; e * n];
    (case.arithmetic, case.asymmetric, case.integers, case.offset) = (1, false, None, None);
    let scales: Vec<f32> = (0..e * groups * n).map(|_| random.unit() * 0.02).collect();
    let scale_bits = scales.iter().map(|scale| u64::from(scale.to_bits())).collect();
    let form = Form::of(number, &case, 64);
    let layouts = Layouts { scale_bits, ..form.of_halves(&case) };
    let (result, found) = case.run(
        &Host::new(),
        |call, layouts| {
            form.set(call, layouts, &case);
            call.weight_scale = GroupedScale::Bits(match groups {
                1 => Tensor::new([e, n], &layouts.scale_bits).unwrap(),
                _ => Tensor::new([e, groups, n], &layouts.scale_bits).unwrap(),
            });
        },
        &layouts,
    );
    assert_eq!(result, Ok(()));
    file.call(&case, groups, &scales, &found);
    found
}

/// What the reference says of the answers.
fn compare(file: &File) -> Option<String> {
    let root = env!("CARGO_MANIFEST_DIR");
    let folder = std::env::var("TILEKERN_REFERENCE").unwrap_or(format!("{root}/../shared/spec"));
    let python = std::env::var("PYTHON").unwrap_or("python3".into());
    let numpy = Command::new(&python).args(["-c", "import numpy"]).stderr(Stdio::null()).status();
    if !numpy.is_ok_and(|s| s.success()) || !std::path::Path::new(&folder).join("ref_gmm.py").exists() {
        return None;
    }
    let path = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("grouped_matmul");
    std::fs::write(&path, &file.0).unwrap();
    let script = format!("{root}/tests/grouped_matmul/reference.py");
    let output = Command::new(python).args([&script, &folder]).arg(path).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn grouped_matmul_two_thousand_calls() {
    let (mut file, mut digest) = (File::default(), 0xCBF2_9CE4_8422_2325u64);
    let mut random = Random(81);
    for call in 0..CALLS {
        let of = if call % 4 == 3 { four_bits } else { eight_bits };
        // Counted by kind, so that each takes all forms.
        let found = of(if call % 4 == 3 { call / 4 } else { call }, &mut random, &mut file);
        let words = found.scale.iter().chain(&found.offset).flat_map(|word| word.to_le_bytes());
        for byte in words.chain(found.q.iter().map(|&q| q as u8)) {
            digest = (digest ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3);
        }
    }
    let absent = || format!("compared the digest of {CALLS} calls (python3 with numpy and ref_gmm.py are not there)");
    let report = compare(&file).unwrap_or_else(absent);
    // Not through the macros, whose output the test harness keeps for itself.
    let _ = writeln!(std::io::stderr(), "grouped matmul: {}", report.trim_end());
    assert_eq!(digest, DIGEST, "{digest:#018X}");
}

/// The checksum of zip and PNG.
fn crc32(bytes: impl IntoIterator<Item = i8>) -> u32 {
    let bit = |crc: u32| if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 };
    !bytes.into_iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(byte as u8), |crc, _| bit(crc)))
}

/// Numbers of a linear congruential generator; the specification names the checksums.
#[test]
fn grouped_matmul_checksums_of_the_specification() {
    let mut state = 12_345u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 16) as i32
    };
    let [m, k, n, e] = [12, 32, 64, 4];
    let mut bytes = |count: usize| -> Vec<i8> { (0..count).map(|_| (next() % 255 - 127) as i8).collect() };
    let (x, w) = (bytes(m * k), bytes(e * k * n));
    let w_scale = (0..e * n).map(|_| (1 + next() % 64) as f32 / 8192.0).collect();
    let x_scale = (0..m).map(|_| (1 + next() % 32) as f32 / 1024.0).collect();
    let case = Case { m, k, n, e, x, w, w_scale, x_scale, list: vec![3, 4, 4, 9], arithmetic: 1, fp16: true, ..Case::default() };
    let layouts = Layouts { nz: stripes(&case, 32), ..Layouts::default() };
    let inputs = [&case.x, &case.w, &layouts.nz].map(|bytes| crc32(bytes.iter().copied()));
    assert_eq!(inputs, [0x40BE_C306, 0xF8D0_3734, 0x12E7_E5A8]);
    every_host(|host| {
        for nz in [false, true] {
            let (result, found) = case.run(
                host,
                |call, layouts| {
                    if nz {
                        call.weight = GroupedWeight::I8(Tensor::new([e, n / 32, k / 16, 16, 32], &layouts.nz).unwrap());
                        call.weight_format = FORMAT_NZ;
                    }
                },
                &layouts,
            );
            assert_eq!((result, crc32(found.q[..9 * n / 2].iter().copied())), (Ok(()), 0xB1DB_4CE3), "{}", host.isa().name());
        }
    });
}
