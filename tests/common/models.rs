//! Small models with random weights, written in every file format, and the trained one beside the repository.
#![allow(dead_code)]

use crate::common::Random;
use tilekern::Scratch;
use tilekern::llama::{Model, ModelOptions};
use tilekern_kernels::element::Element;

/// A model before it is written. Matrices are `[outputs][inputs]`.
#[derive(Clone)]
pub struct Weights {
    pub dim: usize,
    pub hidden: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub vocab: usize,
    pub context: usize,
    pub embedding: Vec<f32>,
    pub layers: Vec<LayerWeights>,
    pub final_norm: Vec<f32>,
    /// None: the embedding.
    pub classifier: Option<Vec<f32>>,
}

#[derive(Clone)]
pub struct LayerWeights {
    pub attention_norm: Vec<f32>,
    pub wq: Vec<f32>,
    pub wk: Vec<f32>,
    pub wv: Vec<f32>,
    pub wo: Vec<f32>,
    pub ffn_norm: Vec<f32>,
    pub w1: Vec<f32>,
    pub w2: Vec<f32>,
    pub w3: Vec<f32>,
}

impl Weights {
    /// Two layers of width 16 with grouped heads, 300 tokens, a context of 48.
    pub fn tiny(seed: u64, shared: bool) -> Weights {
        Weights::with_heads(seed, shared, 2)
    }

    /// The same with so many of its four heads in the caches.
    pub fn with_heads(seed: u64, shared: bool, kv_heads: usize) -> Weights {
        let mut random = Random(seed);
        let mut matrix = |outputs: usize, inputs: usize| -> Vec<f32> {
            let scale = 2.0 / (inputs as f32).sqrt();
            (0..outputs * inputs).map(|_| random.unit() * scale).collect()
        };
        let (dim, hidden, heads, vocab) = (16, 24, 4, 300);
        let kv_dim = dim / heads * kv_heads;
        let layers = (0..2).map(|_| LayerWeights {
            attention_norm: matrix(1, dim).iter().map(|x| 1.0 + x).collect(),
            wq: matrix(dim, dim),
            wk: matrix(kv_dim, dim),
            wv: matrix(kv_dim, dim),
            wo: matrix(dim, dim),
            ffn_norm: matrix(1, dim).iter().map(|x| 1.0 + x).collect(),
            w1: matrix(hidden, dim),
            w2: matrix(dim, hidden),
            w3: matrix(hidden, dim),
        });
        let layers = layers.collect();
        let embedding = matrix(vocab, dim).iter().map(|x| 2.0 * x).collect();
        let classifier = (!shared).then(|| matrix(vocab, dim));
        Weights { dim, hidden, heads, kv_heads, vocab, context: 48, embedding, layers, final_norm: vec![1.5; dim], classifier }
    }

    fn numbers(&self, vocab: i32) -> Vec<u8> {
        let sizes = [self.dim, self.hidden, self.layers.len(), self.heads, self.kv_heads];
        let sizes = sizes.into_iter().map(|n| n as i32).chain([vocab, self.context as i32]);
        sizes.flat_map(i32::to_le_bytes).collect()
    }

    fn each(&self, part: impl Fn(&LayerWeights) -> &Vec<f32>) -> Vec<u8> {
        self.layers.iter().flat_map(|layer| bytes(part(layer))).collect()
    }

    /// llama2.c, version 0.
    pub fn version_0(&self) -> Vec<u8> {
        let vocab = self.vocab as i32;
        let mut file = self.numbers(if self.classifier.is_some() { -vocab } else { vocab });
        file.extend(bytes(&self.embedding));
        file.extend(self.each(|l| &l.attention_norm));
        file.extend(self.each(|l| &l.wq));
        file.extend(self.each(|l| &l.wk));
        file.extend(self.each(|l| &l.wv));
        file.extend(self.each(|l| &l.wo));
        file.extend(self.each(|l| &l.ffn_norm));
        file.extend(self.each(|l| &l.w1));
        file.extend(self.each(|l| &l.w2));
        file.extend(self.each(|l| &l.w3));
        file.extend(bytes(&self.final_norm));
        file.extend(bytes(&vec![0.5; self.context * self.dim / self.heads]));
        file.extend(self.classifier.iter().flat_map(|c| bytes(c)));
        file
    }

    /// llama2.c, version 1.
    pub fn version_1(&self) -> Vec<u8> {
        let mut file = [0x616B_3432u32, 1].iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
        file.extend(self.numbers(self.vocab as i32));
        file.push(u8::from(self.classifier.is_none()));
        file.resize(256, 0);
        file.extend(self.each(|l| &l.attention_norm));
        file.extend(self.each(|l| &l.ffn_norm));
        file.extend(bytes(&self.final_norm));
        file.extend(bytes(&self.embedding));
        file.extend(self.each(|l| &l.wq));
        file.extend(self.each(|l| &l.wk));
        file.extend(self.each(|l| &l.wv));
        file.extend(self.each(|l| &l.wo));
        file.extend(self.each(|l| &l.w1));
        file.extend(self.each(|l| &l.w2));
        file.extend(self.each(|l| &l.w3));
        file.extend(self.classifier.iter().flat_map(|c| bytes(c)));
        file
    }

    /// `.tkm`
    pub fn tkm(&self, tokenizer: &[u8]) -> Vec<u8> {
        let mut file = b"TKM1".to_vec();
        file.extend([1u32, 64].iter().flat_map(|n| n.to_le_bytes()));
        file.extend(self.numbers(self.vocab as i32));
        file.extend([1e-5f32, 10_000.0].iter().flat_map(|x| x.to_le_bytes()));
        file.extend([u32::from(self.classifier.is_none()), tokenizer.len() as u32].iter().flat_map(|n| n.to_le_bytes()));
        file.extend([0; 8]);
        file.extend(tokenizer);
        file.resize(file.len().next_multiple_of(4), 0);
        file.extend(quantised(&self.embedding, self.dim));
        for layer in &self.layers {
            file.extend(bytes(&layer.attention_norm));
            for matrix in [&layer.wq, &layer.wk, &layer.wv, &layer.wo] {
                file.extend(quantised(matrix, self.dim));
            }
            file.extend(bytes(&layer.ffn_norm));
            file.extend(quantised(&layer.w1, self.dim));
            file.extend(quantised(&layer.w2, self.hidden));
            file.extend(quantised(&layer.w3, self.dim));
        }
        file.extend(bytes(&self.final_norm));
        file.extend(self.classifier.iter().flat_map(|c| quantised(c, self.dim)));
        seal(&mut file);
        file
    }
}

/// Writes the checksum of a `.tkm` file.
pub fn seal(file: &mut [u8]) {
    let mut hash = 0xCBF2_9CE4_8422_2325u64;
    for &b in &file[64..] {
        hash = (hash ^ u64::from(b)).wrapping_mul(0x0100_0000_01B3);
    }
    file[56..64].copy_from_slice(&hash.to_le_bytes());
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|x| x.to_le_bytes()).collect()
}

/// Scales, values, padding.
fn quantised(matrix: &[f32], inputs: usize) -> Vec<u8> {
    let scales: Vec<f32> =
        matrix.chunks(inputs).map(|row| row.iter().fold(0.0, |top: f32, x| top.max(x.abs())) / 127.0).collect();
    let mut file = bytes(&scales);
    for (row, scale) in matrix.chunks(inputs).zip(&scales) {
        file.extend(row.iter().map(|x| (x / scale).round_ties_even() as i8 as u8));
    }
    file.resize(file.len().next_multiple_of(4), 0);
    file
}

/// A tokenizer of `vocab` pieces: the special ones, the bytes, a blank, letters, and pairs of what stands before them.
pub fn tokenizer(vocab: usize) -> Vec<u8> {
    let mut pieces: Vec<Vec<u8>> = vec![b"<unk>".to_vec(), b"\n<s>\n".to_vec(), b"\n</s>\n".to_vec()];
    pieces.extend((0..=255).map(|b| format!("<0x{b:02X}>").into_bytes()));
    pieces.extend([b" ".to_vec(), b"e".to_vec(), b"h".to_vec(), b"t".to_vec(), "é".as_bytes().to_vec()]);
    pieces.extend([b"he".to_vec(), b" t".to_vec(), b" the".to_vec(), b"th".to_vec(), b"ee".to_vec()]);
    let mut n = 0;
    while pieces.len() < vocab {
        pieces.push(format!("{}", char::from_u32(0x100 + n).unwrap()).into_bytes());
        n += 1;
    }
    let pieces: Vec<(f32, Vec<u8>)> = pieces.into_iter().enumerate().map(|(i, p)| (-(i as f32), p)).collect();
    tokenizer_of(&pieces)
}

/// A `tokenizer.bin` of these pieces.
pub fn tokenizer_of(pieces: &[(f32, Vec<u8>)]) -> Vec<u8> {
    let longest = pieces.iter().map(|p| p.1.len()).max().unwrap() as u32;
    let mut file = longest.to_le_bytes().to_vec();
    for (score, piece) in pieces {
        file.extend(score.to_le_bytes());
        file.extend((piece.len() as u32).to_le_bytes());
        file.extend(piece);
    }
    file
}

/// Memory for a model that is known to be good.
pub fn memory<T: Element>(options: &ModelOptions<'_>, file: &[u8]) -> Scratch {
    let mut memory = Scratch::new(Model::<T>::layout(options, file).unwrap());
    memory.fill(0xA5);
    memory
}

/// Loads a good model with its tokenizer and hands it over.
pub fn with_model(file: &[u8], tokenizer: &[u8], then: impl FnOnce(&Model<'_>)) {
    let options = ModelOptions { tokenizer: Some(tokenizer), ..Default::default() };
    let mut memory = memory::<f32>(&options, file);
    then(&Model::load(&options, file, &mut memory).unwrap());
}

/// The trained model beside the repository and its tokenizer, or a word that they are not there.
pub fn stories() -> Option<(Vec<u8>, Vec<u8>)> {
    let data = concat!(env!("CARGO_MANIFEST_DIR"), "/../shared/data");
    let read = |name: &str| std::fs::read(format!("{data}/{name}")).ok();
    let files = read("stories260K.bin").zip(read("tok512.bin"));
    if files.is_none() {
        eprintln!("skipped: there is no stories260K.bin and tok512.bin in {data}");
    }
    files
}
