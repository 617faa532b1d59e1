//! Every method of every token against plain scalar code, lane by lane and bit for bit.

#[path = "../common/mod.rs"]
mod common;
mod lanes;

mod arithmetic;
mod element;
mod fma;
mod folds;
mod integers;
mod moves;

/// Every method of the two traits is called by a test.
#[test]
#[cfg_attr(miri, ignore = "searches texts, for minutes")]
fn every_method_is_tested() {
    let tests = [
        include_str!("arithmetic.rs"),
        include_str!("element.rs"),
        include_str!("folds.rs"),
        include_str!("fma.rs"),
        include_str!("integers.rs"),
        include_str!("lanes.rs"),
        include_str!("moves.rs"),
    ]
    .concat();
    // Reached through `Level::run` and the kernels, and through `Element` in element.rs.
    let through = ["vectorize", "apart", "common", "beside", "load_f16", "store_f16", "load_partial", "store_partial"];
    let traits = [include_str!("../../src/simd/mod.rs"), include_str!("../../src/simd/dot.rs")];
    let lines = traits.iter().flat_map(|text| text.lines());
    let safe = |line: &'static str| line.strip_prefix("    ").map(|line| line.strip_prefix("unsafe ").unwrap_or(line));
    let methods =
        lines.filter_map(safe).filter_map(|line| line.strip_prefix("fn ")).map(|line| line.split(['(', '<']).next().unwrap());
    let tested = |method: &&str| {
        ["(", "::<"].iter().any(|call| ["s", "unit"].iter().any(|on| tests.contains(&format!("{on}.{method}{call}"))))
    };
    let untested: Vec<&str> = methods.filter(|method| !through.contains(method) && !tested(method)).collect();
    assert!(untested.is_empty(), "{untested:?}");
}
