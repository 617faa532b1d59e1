//! Chooses tokens for a batch through aclnn: on an Ascend NPU where CANN is found, else on this processor through the library that
//! has aclnn's functions on it.
//!
//! ```sh
//! cargo run --release --features ascend --example ascend
//! ```
//!
//! Without CANN it needs `cargo build --release -p tilekern-opapi-host`, or that library where the process looks for libraries.

#[path = "stop/mod.rs"]
mod stop;

use std::error::Error;
use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use stop::Stop;
use tilekern::acl::{Buffer, Device, Stream, Table, load};
use tilekern::ops::{PostSample, TopKTopPSample};
use tilekern::{Ascend, DeviceScratch, DeviceTensor, DeviceTensorMut, Run};

const ROWS: usize = 4;
const VOCABULARY: usize = 1000;

fn main() -> ExitCode {
    let text = choose().map_err(|error| Stop::Refused(error.to_string()));
    stop::exit("ascend", 1, text.and_then(|text| Ok(io::stdout().write_all(text.as_bytes())?)))
}

/// Where it ran, and the tokens, a line each.
fn choose() -> Result<String, Box<dyn Error>> {
    let (table, place) = find()?;
    let mut text = format!("on {place}\n");
    let device = Device::open(&table, 0)?;
    let stream = Stream::new(&device)?;

    // Rows with one peak each, at a column that the row's number gives.
    let peak = |row: usize| (row * 313 + 7) % VOCABULARY;
    let height = |i: usize| -0.05 * (i % VOCABULARY).abs_diff(peak(i / VOCABULARY)) as f32;
    let logits: Vec<f32> = (0..ROWS * VOCABULARY).map(height).collect();
    let logits = Buffer::from_slice(&stream, &logits)?;
    let top_k = Buffer::from_slice(&stream, &[0, 0, 20, 1])?;
    let top_p = Buffer::from_slice(&stream, &[1.0f32, 0.5, 0.9, 1.0])?;
    let generator = Buffer::from_slice(&stream, &[7i64, 0])?;
    let mut tokens = Buffer::<i64>::new(&stream, ROWS)?;

    let mut call = TopKTopPSample::new(
        DeviceTensor::new([ROWS, VOCABULARY], &logits)?,
        DeviceTensor::new([ROWS], &top_k)?,
        DeviceTensor::new([ROWS], &top_p)?,
        DeviceTensorMut::new([ROWS], &mut tokens)?,
    );
    call.post_sample = PostSample::MultiNomial;
    call.generator = Some(DeviceTensor::new([2], &generator)?);

    let npu = Ascend::new(&stream);
    let told = |error: tilekern::Error| format!("{error}: {}", npu.recent_message().as_str());
    let mut workspace = Buffer::new(&stream, npu.workspace(&call).map_err(told)?.size())?;
    npu.run(call, DeviceScratch::new(&mut workspace)).map_err(told)?;
    let mut chosen = [0; ROWS];
    tokens.read(&mut chosen)?;
    for (row, token) in chosen.into_iter().enumerate() {
        writeln!(text, "row {row}: token {token}, {} from the peak", (token as usize).abs_diff(peak(row)))?;
    }
    Ok(text)
}

/// The functions of aclnn, and whose they are.
fn find() -> Result<(Table, String), Box<dyn Error>> {
    let missing = match load::cann() {
        Ok(table) if table.is_host() => return Ok((*table, "this processor, by an installation of its library".into())),
        Ok(table) => return Ok((*table, "an Ascend NPU".into())),
        Err(missing) => missing,
    };
    // Beside this program's directory, as cargo lays it out; or wherever libraries are looked for.
    let name = format!("{}tilekern_opapi{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX);
    let program = std::env::current_exe()?;
    let beside = program.ancestors().skip(1).take(2).map(|directory| directory.join(&name));
    for path in beside.filter(|path| path.exists()).chain([PathBuf::from(&name)]) {
        // SAFETY: a library of this project, checked against the same prototypes.
        if let Ok(table) = unsafe { load::library(&path) } {
            return Ok((table, format!("this processor, by {}", path.display())));
        }
    }
    Err(format!("{missing}; and no {name}: cargo build --release -p tilekern-opapi-host").into())
}
