//! Says which instruction sets the tests of this run cover, and fails if the processor has one that they do not.
//!
//! A test that loops over the instruction sets passes where detection finds none but the portable one; here the kernel's own list
//! (`/proc/cpuinfo`) says what must have been found. Without the test harness, so that the line is always printed.

use tilekern::{Host, Isa, Run, Scratch, Serial, Tensor, TensorMut, ops::RmsNorm};

/// What each instruction set of this architecture needs, in the words of `/proc/cpuinfo`. (Under qemu those are the host's words, and
/// `.ci/run` reads the line that is printed.)
const NEEDS: &[(Isa, &str)] = if cfg!(target_arch = "x86_64") {
    &[
        (Isa::Avx2, "avx2 fma f16c bmi1 bmi2 abm popcnt"),
        (Isa::Avx512, "avx2 fma f16c bmi1 bmi2 abm popcnt avx512f avx512bw avx512dq avx512vl"),
        (Isa::Avx512Vnni, "avx2 fma f16c bmi1 bmi2 abm popcnt avx512f avx512bw avx512dq avx512vl avx512_vnni"),
        (Isa::Avx512Amx, "avx2 fma f16c bmi1 bmi2 abm popcnt avx512f avx512bw avx512dq avx512vl avx512_vnni amx_tile amx_int8"),
    ]
} else {
    &[(Isa::Neon, "asimd"), (Isa::NeonDot, "asimd asimddp")]
};

/// Runs an operation there; `None` where the processor lacks the instruction set.
fn run(isa: Isa) -> Option<[u32; 40]> {
    let host = Host::with(isa, Serial).ok()?;
    assert_eq!(host.isa(), isa);
    let input: [f32; 40] = core::array::from_fn(|i| i as f32 - 17.0);
    let (gamma, mut output) = ([0.7; 40], [0.0; 40]);
    let call = RmsNorm::new(
        Tensor::new([1, 40], &input).unwrap(),
        Tensor::new([40], &gamma).unwrap(),
        TensorMut::new([1, 40], &mut output).unwrap(),
    );
    let mut scratch = Scratch::new(host.workspace(&call).unwrap());
    host.run(call, &mut scratch).unwrap();
    Some(output.map(f32::to_bits))
}

fn main() {
    let expected = run(Isa::Portable);
    let ran: Vec<Isa> = Isa::ALL.into_iter().filter(|&isa| run(isa).is_some_and(|output| Some(output) == expected)).collect();
    let names: Vec<&str> = ran.iter().map(|isa| isa.name()).collect();
    println!("isa coverage: {}", names.join(" "));

    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let features = cpuinfo.lines().find(|line| line.starts_with("flags") || line.starts_with("Features")).unwrap_or_default();
    let has = |flag| features.split_whitespace().any(|feature| feature == flag);
    for &(isa, needs) in NEEDS {
        if isa == Isa::Avx512Amx && !ran.contains(&isa) {
            println!("no AMX here: its tiles were not tested");
        }
        assert!(!needs.split(' ').all(has) || ran.contains(&isa), "this processor has {}, and it did not run", isa.name());
    }
}
