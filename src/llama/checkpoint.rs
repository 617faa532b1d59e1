//! Model files: llama2.c checkpoints of versions 0 and 1, and `.tkm`.
//!
//! A file is bytes from anywhere. Its header is checked first, with checked arithmetic, and its length must be exactly what the
//! header says: after that no offset can leave the file, and no size taken from it can exceed a small multiple of it. Numbers are
//! read little-endian at any alignment.

use crate::error::{Error, Value};
use tilekern_kernels::element::Element;

mod matrix;
mod parts;

use matrix::Values;
pub(crate) use matrix::{Floats, Matrix};
pub(crate) use parts::Part;
pub use parts::Shape;
use parts::{Order, TKM, VERSION_0, VERSION_1};

/// A model file whose header and length were found right.
pub(crate) struct Checkpoint<'f> {
    pub shape: Shape,
    pub eps: f32,
    pub theta: f32,
    /// Whether the embedding is also the classifier.
    pub shared: bool,
    /// The tokenizer that the file carries.
    pub tokenizer: Option<&'f [u8]>,
    int8: bool,
    order: Order,
    body: &'f [u8],
}

/// The first bytes as little-endian words.
fn words<const N: usize>(file: &[u8]) -> Result<[u32; N], Error> {
    let words = file.as_chunks::<4>().0.first_chunk::<N>();
    Ok(words.ok_or_else(|| Error::invalid("file_bytes", 4 * N, file.len()))?.map(u32::from_le_bytes))
}

const TKM_MAGIC: u32 = u32::from_le_bytes(*b"TKM1");
const LLAMA2C_MAGIC: u32 = 0x616B_3432;

impl<'f> Checkpoint<'f> {
    /// Reads the header and checks the length. What the tensors contain is left to [`Checkpoint::validate`].
    pub fn open(file: &'f [u8]) -> Result<Checkpoint<'f>, Error> {
        let [magic] = words(file)?;
        let checkpoint = match magic {
            TKM_MAGIC => Checkpoint::tkm(file),
            LLAMA2C_MAGIC => Checkpoint::version_1(file),
            // Version 0 begins with its dim.
            1..=0x0010_0000 => Checkpoint::version_0(file),
            _ => Err(Error::invalid("magic", "a .tkm file or a llama2.c checkpoint", "neither")),
        }?;
        let needed = checkpoint.walk(None).ok_or_else(|| Error::invalid("file", "sizes that fit in memory", "an overflow"))?;
        if checkpoint.body.len() != needed {
            let header = file.len() - checkpoint.body.len();
            return Err(Error::invalid("file_bytes", Value::Size(header.saturating_add(needed)), file.len()));
        }
        Ok(checkpoint)
    }

    fn version_0(file: &'f [u8]) -> Result<Checkpoint<'f>, Error> {
        let numbers = words::<7>(file)?.map(|w| i64::from(w as i32));
        let [dim, hidden, layers, heads, kv_heads, vocab, context] = numbers;
        // A negative vocabulary says that the classifier is a matrix of its own.
        let shape = Shape::new([dim, hidden, layers, heads, kv_heads, vocab.abs(), context])?;
        Ok(Checkpoint::llama2c(shape, vocab > 0, VERSION_0, &file[28..]))
    }

    fn version_1(file: &'f [u8]) -> Result<Checkpoint<'f>, Error> {
        let head = words::<64>(file)?;
        match head[1] {
            1 => {}
            2 => return Err(Error::invalid("version", "llama2.c version 0 or 1", "llama2.c version 2, int8 in groups")),
            n => return Err(Error::invalid("version", "llama2.c version 0 or 1", n as usize)),
        }
        let [_, _, numbers @ .., flags] = head.first_chunk::<10>().copied().unwrap_or_default();
        let shape = Shape::new(numbers.map(|w| i64::from(w as i32)))?;
        if flags > 1 || head[10..] != [0; 54] {
            return Err(Error::invalid("header", "zeros behind the shared flag", "other bytes"));
        }
        Ok(Checkpoint::llama2c(shape, flags == 1, VERSION_1, &file[256..]))
    }

    fn llama2c(shape: Shape, shared: bool, order: Order, body: &'f [u8]) -> Checkpoint<'f> {
        Checkpoint { shape, eps: 1e-5, theta: 10_000.0, shared, tokenizer: None, int8: false, order, body }
    }

    fn tkm(file: &'f [u8]) -> Result<Checkpoint<'f>, Error> {
        let head = words::<16>(file)?;
        let [_, version, header_bytes, numbers @ .., eps, theta, flags, tokenizer_bytes, _, _] = head;
        if version != 1 {
            return Err(Error::invalid("version", ".tkm version 1", version as usize));
        }
        if header_bytes != 64 {
            return Err(Error::invalid("header bytes", 64usize, header_bytes as usize));
        }
        let shape = Shape::new(numbers.map(i64::from))?;
        let (eps, theta) = (f32::from_bits(eps), f32::from_bits(theta));
        for (name, value) in [("eps", eps), ("rope theta", theta)] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::invalid(name, "a finite number above 0", f64::from(value)));
            }
        }
        if flags > 1 {
            return Err(Error::invalid("flags", "0 or 1", flags as usize));
        }
        let (length, rest) = (tokenizer_bytes as usize, &file[64..]);
        let padded = length.checked_next_multiple_of(4).filter(|&n| n <= rest.len());
        let padded = padded.ok_or_else(|| Error::invalid("tokenizer bytes", "a tokenizer inside the file", length))?;
        let (tokenizer, body) = rest.split_at(padded);
        let (tokenizer, padding) = tokenizer.split_at(length);
        if padding.iter().any(|&b| b != 0) {
            return Err(Error::invalid("tokenizer", "padding of zeros", "other bytes"));
        }
        let (shared, tokenizer) = (flags == 1, Some(tokenizer));
        Ok(Checkpoint { shape, eps, theta, shared, tokenizer, int8: true, order: TKM, body })
    }

    /// Bytes before a tensor, or of all tensors; `None` on overflow, which a file whose length was checked cannot have.
    fn walk(&self, to: Option<(Part, usize)>) -> Option<usize> {
        let mut offset = 0usize;
        for group in self.order.iter().filter(|group| !(self.shared && group[0] == Part::Classifier)) {
            let bytes =
                |parts: &[Part]| parts.iter().try_fold(0usize, |sum, part| sum.checked_add(part.bytes(&self.shape, self.int8)?));
            if let Some((part, layer)) = to
                && let Some(place) = group.iter().position(|&p| p == part)
            {
                return offset.checked_add(bytes(group)?.checked_mul(layer)?)?.checked_add(bytes(&group[..place])?);
            }
            let copies = if group[0].in_layers() { self.shape.layers } else { 1 };
            offset = offset.checked_add(bytes(group)?.checked_mul(copies)?)?;
        }
        Some(offset)
    }

    fn bytes_of(&self, part: Part, layer: usize) -> &'f [u8] {
        // `open` walked over all of it.
        let offset = self.walk(Some((part, layer))).unwrap_or(0);
        &self.body[offset..][..part.bytes(&self.shape, self.int8).unwrap_or(0)]
    }

    /// A vector of a layer, or the final norm.
    pub fn vector(&self, part: Part, layer: usize) -> Floats<'f> {
        Floats(self.bytes_of(part, layer).as_chunks().0)
    }

    /// A matrix of a layer, the embedding or the classifier.
    pub fn matrix(&self, part: Part, layer: usize) -> Matrix<'f> {
        let (outputs, inputs) = part.sizes(&self.shape);
        let bytes = self.bytes_of(part, layer);
        let values = match self.int8 {
            true => {
                let (scales, rest) = bytes.split_at(4 * outputs);
                let (values, padding) = rest.split_at(outputs * inputs);
                Values::I8 { scales: Floats(scales.as_chunks().0), values: bytemuck::cast_slice(values), padding }
            }
            false => Values::F32(Floats(bytes.as_chunks().0)),
        };
        Matrix { outputs, inputs, values }
    }

    /// The matrix that gives the logits.
    pub fn classifier(&self) -> Matrix<'f> {
        self.matrix(if self.shared { Part::Embedding } else { Part::Classifier }, 0)
    }

    /// Checks what the tensors contain: finite numbers, no negative scale, no -128, and the checksum where there is one. What is
    /// kept as `T`, the embedding, the norms and a head of floats, is finite there, too.
    pub fn validate<T: Element>(&self, file: &[u8], float_head: bool) -> Result<(), Error> {
        if self.int8 {
            let stated = words::<16>(file)?;
            let stated = u64::from(stated[14]) | u64::from(stated[15]) << 32;
            if fnv1a(&file[64..]) != stated {
                return Err(Error::invalid("checksum", "the one that the header states", "another: the file is damaged"));
            }
        }
        for &part in self.order.iter().copied().flatten().filter(|&&part| !(self.shared && part == Part::Classifier)) {
            let kept = match part {
                Part::Embedding | Part::AttentionNorm | Part::FfnNorm | Part::FinalNorm => true,
                Part::Classifier => float_head,
                _ => false,
            };
            for layer in 0..if part.in_layers() { self.shape.layers } else { 1 } {
                let largest = match part.is_vector() {
                    true => self.vector(part, layer).largest(part.name())?,
                    false => self.matrix(part, layer).largest(part.name())?,
                };
                // Rounding keeps the order: if the largest is finite as `T`, all are.
                let narrowed: f32 = T::narrow(largest).as_();
                if kept && !narrowed.is_finite() {
                    let expected = "magnitudes that are finite in the dtype of the model";
                    return Err(Error::invalid(part.name(), expected, f64::from(largest)));
                }
            }
        }
        Ok(())
    }
}

/// FNV-1a over 64 bits.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xCBF2_9CE4_8422_2325, |hash, &b| (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3))
}
