//! Rows of numbers from numpy's file format, versions 1 to 3, and from text.

use tilekern::f16;

/// What such a file begins with.
pub const MAGIC: &[u8] = b"\x93NUMPY";

/// Rows of logits, all of one length.
pub struct Rows {
    pub count: usize,
    pub columns: usize,
    /// Row-major.
    pub logits: Vec<f32>,
}

impl Rows {
    fn new(count: usize, columns: usize, logits: Vec<f32>) -> Result<Rows, String> {
        match logits.len() {
            0 => Err("there are no logits".into()),
            _ => Ok(Rows { count, columns, logits }),
        }
    }
}

/// The text behind `'key':` in the header's dictionary.
fn value<'a>(header: &'a str, key: &str) -> Result<&'a str, String> {
    let found = header.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
    found.ok_or_else(|| format!("the header has no {key}"))
}

fn shape(text: &str) -> Result<(usize, usize), String> {
    let inside = text.strip_prefix('(').and_then(|rest| rest.split_once(')')).map(|(inside, _)| inside);
    let sizes = inside.map(|inside| inside.split(',').map(str::trim).filter(|size| !size.is_empty()).map(str::parse).collect());
    match sizes {
        Some(Ok::<Vec<usize>, _>(sizes)) => match sizes[..] {
            [columns] => Ok((1, columns)),
            [rows, columns] => Ok((rows, columns)),
            _ => Err(format!("a rank of 1 or 2 is expected, not {}", sizes.len())),
        },
        _ => Err("the header has no shape".into()),
    }
}

/// The rows of a `.npy` file.
pub fn read(bytes: &[u8]) -> Result<Rows, String> {
    let short = || "the file ends too early".to_string();
    let rest = bytes.strip_prefix(MAGIC).ok_or("this is no .npy file")?;
    let (version, rest) = rest.split_first_chunk::<2>().ok_or_else(short)?;
    let (length, rest) = match version[0] {
        1 => rest.split_first_chunk::<2>().map(|(length, rest)| (u16::from_le_bytes(*length).into(), rest)),
        2 | 3 => rest.split_first_chunk::<4>().map(|(length, rest)| (u32::from_le_bytes(*length) as usize, rest)),
        other => return Err(format!("version {other} of the format is not known")),
    }
    .ok_or_else(short)?;
    let (header, data) = rest.split_at_checked(length).ok_or_else(short)?;
    let header = std::str::from_utf8(header).map_err(|_| "the header is no text")?;
    if value(header, "fortran_order")?.split([',', '}']).next().map(str::trim) != Some("False") {
        return Err("C order is expected, not Fortran's".into());
    }
    let (rows, columns) = shape(value(header, "shape")?)?;
    let dtype = value(header, "descr")?.split('\'').nth(1).unwrap_or("none");
    let size = match dtype {
        "<f4" => 4,
        "<f2" => 2,
        _ => return Err(format!("little-endian float32 or float16 is expected, not {dtype}")),
    };
    let bytes = rows.checked_mul(columns).and_then(|n| n.checked_mul(size)).and_then(|n| data.get(..n)).ok_or_else(short)?;
    let logits = match size {
        4 => bytes.as_chunks().0.iter().map(|&x| f32::from_le_bytes(x)).collect(),
        _ => bytes.as_chunks().0.iter().map(|&x| f16::from_le_bytes(x).to_f32()).collect(),
    };
    Rows::new(rows, columns, logits)
}

/// The rows of a text: one a line, numbers apart by blanks or commas. Lines without numbers do not count.
pub fn read_text(text: &[u8]) -> Result<Rows, String> {
    let text = str::from_utf8(text).map_err(|_| "neither a .npy file nor text in UTF-8")?;
    let (mut count, mut columns, mut logits) = (0, 0, Vec::new());
    for line in text.lines() {
        let before = logits.len();
        for word in line.split(|c: char| c == ',' || c.is_whitespace()).filter(|word| !word.is_empty()) {
            logits.push(word.parse().map_err(|_| format!("{word:?} is no number"))?);
        }
        let found = logits.len() - before;
        if found == 0 {
            continue;
        }
        if count > 0 && found != columns {
            return Err(format!("row {count} has {found} numbers, the rows before {columns}"));
        }
        (count, columns) = (count + 1, found);
    }
    Rows::new(count, columns, logits)
}
