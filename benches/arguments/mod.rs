//! What a bench is asked for: `[--isa NAME] [--v V] [--only TEXT]` and what else it knows, and `--bench`, which cargo adds.
// Each bench uses a part.
#![allow(dead_code)]

use tilekern::Isa;

/// The arguments.
pub struct Arguments(Vec<String>);

impl Arguments {
    /// Of this process.
    pub fn new() -> Arguments {
        Arguments(std::env::args().collect())
    }

    /// Whether it measures; else everything runs once.
    pub fn full(&self) -> bool {
        self.0.iter().any(|a| a == "--bench")
    }

    /// The length of the rows.
    pub fn v(&self) -> usize {
        self.number("--v").unwrap_or(if self.full() { 128_256 } else { 3000 })
    }

    /// What the names of cases contain.
    pub fn only(&self) -> &str {
        self.after("--only").unwrap_or_default()
    }

    /// The instruction sets.
    pub fn isas(&self) -> impl Iterator<Item = Isa> {
        Isa::ALL.into_iter().filter(|isa| self.after("--isa").is_none_or(|only| only == isa.name()))
    }

    /// The number behind an argument of that name.
    pub fn number(&self, name: &str) -> Option<usize> {
        self.after(name).map(|number| number.parse().unwrap())
    }

    /// What comes behind an argument of that name.
    pub fn after(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|a| a == name)?;
        self.0.get(at + 1).map(String::as_str)
    }
}
