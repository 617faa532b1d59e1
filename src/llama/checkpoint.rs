//! Model files: llama2.c checkpoints of versions 0 and 1, and `.tkm`.
//!
//! A file is bytes from anywhere. Its header is checked first, with checked arithmetic, and its length must be exactly what the
//! header says: after that no offset can leave the file, and no size taken from it can exceed a small multiple of it. Numbers are
//! read little-endian at any alignment.

use crate::error::{Error, Value};
use tilekern_kernels::pack;

/// The sizes of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Width of the residual stream.
    pub dim: usize,
    /// Inner width of the feed-forward block.
    pub hidden: usize,
    /// Number of layers.
    pub layers: usize,
    /// Number of query heads.
    pub heads: usize,
    /// Number of key and value heads.
    pub kv_heads: usize,
    /// Number of tokens.
    pub vocab: usize,
    /// The longest sequence.
    pub context: usize,
}

impl Shape {
    /// Width of a head.
    pub fn head_dim(&self) -> usize {
        self.dim / self.heads
    }

    /// Width of the keys and of the values of a token.
    pub fn kv_dim(&self) -> usize {
        self.kv_heads * self.head_dim()
    }

    /// From the seven numbers in the order in which every format has them.
    fn new(numbers: [i64; 7]) -> Result<Shape, Error> {
        const NAMES: [&str; 7] = ["dim", "hidden", "layers", "heads", "kv_heads", "vocab", "context"];
        let mut sizes = [0; 7];
        for (i, &n) in numbers.iter().enumerate() {
            let size = i32::try_from(n).ok().filter(|&n| n >= 1).and_then(|n| usize::try_from(n).ok());
            sizes[i] = size.ok_or_else(|| Error::invalid(NAMES[i], "a size from 1 to 2^31 - 1", n))?;
        }
        let [dim, hidden, layers, heads, kv_heads, vocab, context] = sizes;
        if dim % heads != 0 {
            return Err(Error::invalid("heads", "a divisor of dim", heads));
        }
        if dim / heads % 2 != 0 {
            return Err(Error::invalid("heads", "an even head size", dim / heads));
        }
        if heads % kv_heads != 0 {
            return Err(Error::invalid("kv_heads", "a divisor of heads", kv_heads));
        }
        Ok(Shape { dim, hidden, layers, heads, kv_heads, vocab, context })
    }
}

/// A tensor of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Embedding,
    AttentionNorm,
    Wq,
    Wk,
    Wv,
    Wo,
    FfnNorm,
    W1,
    W2,
    W3,
    FinalNorm,
    /// The rotary table that version 0 stores and nobody reads.
    Frequencies,
    Classifier,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Embedding => "embedding",
            Part::AttentionNorm => "attention_norm",
            Part::Wq => "wq",
            Part::Wk => "wk",
            Part::Wv => "wv",
            Part::Wo => "wo",
            Part::FfnNorm => "ffn_norm",
            Part::W1 => "w1",
            Part::W2 => "w2",
            Part::W3 => "w3",
            Part::FinalNorm => "final_norm",
            Part::Frequencies => "frequencies",
            Part::Classifier => "classifier",
        }
    }

    /// Whether each layer has one.
    fn in_layers(self) -> bool {
        use Part::*;
        matches!(self, AttentionNorm | Wq | Wk | Wv | Wo | FfnNorm | W1 | W2 | W3)
    }

    fn is_vector(self) -> bool {
        matches!(self, Part::AttentionNorm | Part::FfnNorm | Part::FinalNorm | Part::Frequencies)
    }

    /// Outputs and inputs of a matrix; rows and columns of the vectors of one kind.
    pub fn sizes(self, s: &Shape) -> (usize, usize) {
        match self {
            Part::Embedding | Part::Classifier => (s.vocab, s.dim),
            Part::AttentionNorm | Part::FfnNorm | Part::FinalNorm => (1, s.dim),
            Part::Wq | Part::Wo => (s.dim, s.dim),
            Part::Wk | Part::Wv => (s.kv_dim(), s.dim),
            Part::W1 | Part::W3 => (s.hidden, s.dim),
            Part::W2 => (s.dim, s.hidden),
            Part::Frequencies => (s.context, s.head_dim()),
        }
    }

    fn bytes(self, s: &Shape, int8: bool) -> Option<usize> {
        let (outputs, inputs) = self.sizes(s);
        let count = outputs.checked_mul(inputs)?;
        match int8 && !self.is_vector() {
            true => outputs.checked_mul(4)?.checked_add(count)?.checked_next_multiple_of(4),
            false => count.checked_mul(4),
        }
    }
}

/// What follows a header: groups of tensors. The tensors of layers come once for each layer, a group of them together.
type Order = &'static [&'static [Part]];

const VERSION_0: Order = {
    use Part::*;
    &[
        &[Embedding],
        &[AttentionNorm],
        &[Wq],
        &[Wk],
        &[Wv],
        &[Wo],
        &[FfnNorm],
        &[W1],
        &[W2],
        &[W3],
        &[FinalNorm],
        &[Frequencies],
        &[Classifier],
    ]
};
const VERSION_1: Order = {
    use Part::*;
    &[&[AttentionNorm], &[FfnNorm], &[FinalNorm], &[Embedding], &[Wq], &[Wk], &[Wv], &[Wo], &[W1], &[W2], &[W3], &[Classifier]]
};
const TKM: Order = {
    use Part::*;
    &[&[Embedding], &[AttentionNorm, Wq, Wk, Wv, Wo, FfnNorm, W1, W2, W3], &[FinalNorm], &[Classifier]]
};

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

    /// Checks what the tensors contain: finite numbers, no negative scale, no -128, and the checksum where there is one.
    pub fn validate(&self, file: &[u8]) -> Result<(), Error> {
        if self.int8 {
            let stated = words::<16>(file)?;
            let stated = u64::from(stated[14]) | u64::from(stated[15]) << 32;
            if fnv1a(&file[64..]) != stated {
                return Err(Error::invalid("checksum", "the one that the header states", "another: the file is damaged"));
            }
        }
        for &part in self.order.iter().copied().flatten().filter(|&&part| !(self.shared && part == Part::Classifier)) {
            for layer in 0..if part.in_layers() { self.shape.layers } else { 1 } {
                match part.is_vector() {
                    true => self.vector(part, layer).validate(part.name())?,
                    false => self.matrix(part, layer).validate(part.name())?,
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

/// Numbers in a file.
#[derive(Clone, Copy)]
pub(crate) struct Floats<'f>(&'f [[u8; 4]]);

impl Floats<'_> {
    pub fn get(&self, i: usize) -> f32 {
        f32::from_le_bytes(self.0[i])
    }

    fn validate(&self, name: &'static str) -> Result<(), Error> {
        let finite = (0..self.0.len()).all(|i| self.get(i).is_finite());
        if finite { Ok(()) } else { Err(Error::invalid(name, "finite numbers", "an infinity or a NaN")) }
    }
}

/// A weight `[outputs][inputs]` in a file.
pub(crate) struct Matrix<'f> {
    outputs: usize,
    inputs: usize,
    values: Values<'f>,
}

enum Values<'f> {
    F32(Floats<'f>),
    I8 { scales: Floats<'f>, values: &'f [i8], padding: &'f [u8] },
}

impl Matrix<'_> {
    /// The weight from input `i` to output `o`.
    pub fn get(&self, o: usize, i: usize) -> f32 {
        let at = o * self.inputs + i;
        match &self.values {
            Values::F32(values) => values.get(at),
            Values::I8 { scales, values, .. } => scales.get(o) * f32::from(values[at]),
        }
    }

    /// Bytes and scales that it packs into.
    pub fn packed(&self) -> (usize, usize) {
        (pack::packed_bytes(1, self.inputs, self.outputs).unwrap_or(0), self.outputs)
    }

    /// Packs it, one scale for each output.
    pub fn pack(&self, packed: &mut [i8], scales: &mut [f32]) {
        let (k, n) = (self.inputs, self.outputs);
        match &self.values {
            Values::F32(values) => pack::pack_floats(packed, k, n, |k, n| values.get(n * self.inputs + k), scales),
            Values::I8 { scales: stored, values, .. } => {
                for (o, scale) in scales.iter_mut().enumerate() {
                    *scale = stored.get(o);
                }
                pack::pack_i8(packed, k, n, |k, n| values[n * self.inputs + k]);
            }
        }
    }

    fn validate(&self, name: &'static str) -> Result<(), Error> {
        match &self.values {
            Values::F32(values) => values.validate(name),
            Values::I8 { scales, values, padding } => {
                scales.validate(name)?;
                if (0..self.outputs).any(|o| scales.get(o) < 0.0) {
                    return Err(Error::invalid(name, "scales of at least 0", "a negative one"));
                }
                if values.contains(&i8::MIN) {
                    return Err(Error::invalid(name, "values from -127 to 127", -128i64));
                }
                if padding.iter().any(|&b| b != 0) {
                    return Err(Error::invalid(name, "padding of zeros", "other bytes"));
                }
                Ok(())
            }
        }
    }
}
