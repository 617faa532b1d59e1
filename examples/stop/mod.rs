//! How an example ends early.

use std::io::{self, Write};
use std::process::ExitCode;

/// Why the program ends early.
pub enum Stop {
    /// A wrong flag or file, in one sentence.
    Refused(String),
    /// Nobody reads the output any more, or it cannot be written.
    Output(io::Error),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Output(error)
    }
}

/// The end of `program`, whose refusals have the status `refused`. That nobody reads any more is no failure.
pub fn exit(program: &str, refused: u8, result: Result<(), Stop>) -> ExitCode {
    let (sentence, code) = match result {
        Ok(()) => return ExitCode::SUCCESS,
        Err(Stop::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(Stop::Output(error)) => (format!("cannot write the output: {error}"), 1),
        Err(Stop::Refused(sentence)) => (sentence, refused),
    };
    let _ = writeln!(io::stderr(), "{program}: {sentence}");
    ExitCode::from(code)
}
