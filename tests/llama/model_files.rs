//! Files of models and tokenizers: what is read from good ones, and that no bad one does harm.

use std::alloc::Layout;

use crate::common::{Random, rounds};
use crate::models::{Weights, memory, seal, tokenizer};
use tilekern::llama::{Decoding, DecodingConfig, HeadKind, Model, ModelOptions};
use tilekern::{Error, Host, Scratch, Status, Tensor, f16};

fn load(file: &[u8], tokenizer: Option<&[u8]>) -> Result<(), Error> {
    let options = ModelOptions { tokenizer, ..Default::default() };
    let mut memory = Scratch::new(Model::<f32>::layout(&options, file)?);
    Model::<f32>::load(&options, file, &mut memory).map(|_| ())
}

/// The argument that is blamed.
fn blame(file: &[u8], tokenizer: Option<&[u8]>) -> &'static str {
    let error = load(file, tokenizer).unwrap_err();
    assert_eq!(error.status(), Status::Invalid, "{error}");
    error.argument()
}

fn patched(file: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut file = file.to_vec();
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn every_format_tells_its_shape() {
    let tokens = tokenizer(300);
    for shared in [false, true] {
        let weights = Weights::tiny(1, shared);
        for file in [weights.version_0(), weights.version_1(), weights.tkm(&tokens)] {
            for head in [HeadKind::Int8, HeadKind::Float] {
                let options = ModelOptions { head, tokenizer: Some(&tokens) };
                let mut memory = memory::<f32>(&options, &file);
                let shape = Model::<f32>::load(&options, &file, &mut memory).unwrap().shape();
                assert_eq!((shape.dim, shape.hidden, shape.layers, shape.heads), (16, 24, 2, 4));
                assert_eq!((shape.kv_heads, shape.vocab, shape.context, shape.kv_dim()), (2, 300, 48, 8));
            }
        }
    }
}

#[test]
fn what_is_shown_of_a_model_leaves_its_memory_out() {
    let tokens = tokenizer(300);
    let (file, options) = (Weights::tiny(1, false).version_0(), ModelOptions { tokenizer: Some(&tokens), ..Default::default() });
    assert_eq!(format!("{options:?}"), format!("ModelOptions {{ head: Int8, tokenizer: Some({}) }}", tokens.len()));
    let mut memory = memory::<f32>(&options, &file);
    let model = Model::<f32>::load(&options, &file, &mut memory).unwrap();
    let (host, config) = (Host::new(), DecodingConfig::new(3, 3, -1));
    let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, &model).unwrap());
    let decoding = Decoding::<f32>::new(&host, &config, &model, &mut memory).unwrap();
    for (text, begin) in
        [(format!("{model:?}"), "Model { shape: Shape {"), (format!("{decoding:?}"), "Decoding { sizes: Sizes {")]
    {
        assert!(text.starts_with(begin) && text.len() < 250, "{text}");
    }
}

#[test]
fn headers_are_checked() {
    let weights = Weights::tiny(2, true);
    let file = weights.version_0();
    let number = |at: usize, n: i32| patched(&file, at, &n.to_le_bytes());
    assert_eq!(blame(&number(0, 0), None), "magic");
    assert_eq!(blame(&number(0, i32::MIN), None), "magic");
    assert_eq!(blame(&number(4, -1), None), "hidden");
    assert_eq!(blame(&number(8, 0), None), "layers");
    assert_eq!(blame(&number(12, 3), None), "heads");
    assert_eq!(blame(&number(12, 16), None), "heads");
    assert_eq!(blame(&number(16, 3), None), "kv_heads");
    assert_eq!(blame(&number(20, 0), None), "vocab");
    assert_eq!(blame(&number(20, i32::MIN), None), "vocab");
    assert_eq!(blame(&number(24, -5), None), "context");
    assert_eq!(blame(&number(4, 65_537), None), "hidden");
    for at in [8, 20, 24] {
        assert_eq!(blame(&number(at, i32::MAX), None), "file_bytes");
    }
    assert_eq!(blame(&file[..file.len() - 1], None), "file_bytes");
    assert_eq!(blame(&[&file[..], &[0]].concat(), None), "file_bytes");
    for n in [0, 3, 27] {
        assert_eq!(blame(&file[..n], None), "file_bytes");
    }
    assert_eq!(blame(b"GGUF and more of it, so that a header would fit", None), "magic");

    let file = weights.version_1();
    assert_eq!(blame(&file[..255], None), "file_bytes");
    assert_eq!(blame(&patched(&file, 36, &[2]), None), "header");
    let error = load(&patched(&file, 4, &[2]), None).unwrap_err();
    assert_eq!(error.to_string(), "version: expected llama2.c version 0 or 1, found llama2.c version 2, int8 in groups (161002)");
    assert_eq!(blame(&patched(&file, 4, &[3]), None), "version");
}

#[test]
fn tkm_files_are_checked() {
    let tokens = tokenizer(300);
    let file = Weights::tiny(3, false).tkm(&tokens);
    assert_eq!(load(&file, None), Ok(()));
    for (at, bytes, argument) in [
        (3, &b"2"[..], "magic"),
        (4, &[2][..], "version"),
        (8, &[63], "header bytes"),
        (40, &f32::NAN.to_le_bytes(), "eps"),
        (40, &(-1e-5f32).to_le_bytes(), "eps"),
        (44, &f32::INFINITY.to_le_bytes(), "rope theta"),
        (48, &[2], "flags"),
        (52, &[0xFF; 4], "tokenizer bytes"),
        (56, &[1], "checksum"),
        (64 + tokens.len() + 8, &[1], "checksum"),
    ] {
        assert_eq!(blame(&patched(&file, at, bytes), None), argument);
    }
    // Its own tokenizer has to be one, whichever is used.
    let mut damaged = patched(&file, 64 + 4, &f32::NAN.to_le_bytes());
    seal(&mut damaged);
    assert_eq!((blame(&damaged, None), blame(&damaged, Some(&tokens))), ("tokenizer", "tokenizer"));
    let embedding = 64 + tokens.len().next_multiple_of(4);
    for (at, bytes) in
        [(embedding, (-1.0f32).to_le_bytes()), (embedding, f32::NAN.to_le_bytes()), (embedding + 4 * 300, [0x80; 4])]
    {
        let mut file = patched(&file, at, &bytes);
        seal(&mut file);
        assert_eq!(blame(&file, None), "embedding");
    }
}

#[test]
fn weights_must_be_finite() {
    let mut weights = Weights::tiny(4, true);
    weights.layers[1].w2[5] = f32::NAN;
    assert_eq!(blame(&weights.version_0(), None), "w2");
    assert_eq!(blame(&weights.version_1(), None), "w2");
}

/// What a model keeps is finite in its dtype.
#[test]
fn numbers_must_fit_the_dtype() {
    let blamed = |change: &dyn Fn(&mut Weights), head: HeadKind| {
        let mut weights = Weights::tiny(4, false);
        change(&mut weights);
        let (file, options) = (weights.version_1(), ModelOptions { head, ..Default::default() });
        let mut memory = Scratch::new(Model::<f16>::layout(&options, &file).unwrap());
        memory.fill(7);
        let refused = Model::<f16>::load(&options, &file, &mut memory).err().map(|error| error.argument());
        assert!(refused.is_none() || memory.iter().all(|&byte| byte == 7), "nothing is written");
        assert_eq!(load(&file, None), Ok(()), "f32 takes it");
        refused
    };
    assert_eq!(blamed(&|weights| weights.embedding[9] = -7e4, HeadKind::Int8), Some("embedding"));
    assert_eq!(blamed(&|weights| weights.layers[1].ffn_norm[2] = 7e4, HeadKind::Int8), Some("ffn_norm"));
    assert_eq!(blamed(&|weights| weights.final_norm[0] = 7e4, HeadKind::Float), Some("final_norm"));
    let classifier = |weights: &mut Weights| weights.classifier.as_mut().unwrap()[3] = 7e4;
    assert_eq!([HeadKind::Int8, HeadKind::Float].map(|head| blamed(&classifier, head)), [None, Some("classifier")]);
    assert_eq!(blamed(&|weights| weights.layers[0].w1[0] = 7e4, HeadKind::Float), None, "packed weights have scales");
}

/// Numbers that do not lie as numbers of this machine are read one by one; the model is the same.
#[test]
fn files_load_at_any_address() {
    for (weights, head) in [(Weights::tiny(6, true), HeadKind::Float), (Weights::tiny(6, false), HeadKind::Int8)] {
        for file in [weights.version_0(), weights.version_1(), weights.tkm(&tokenizer(300))] {
            let options = ModelOptions { head, ..Default::default() };
            let loaded = [0, 1, 2, 3].map(|offset| {
                let mut moved = Scratch::new(Layout::from_size_align(file.len() + offset, 64).unwrap());
                moved[offset..].copy_from_slice(&file);
                let mut memory = memory::<f16>(&options, &file);
                memory.fill(0);
                Model::<f16>::load(&options, &moved[offset..], &mut memory).unwrap();
                memory.to_vec()
            });
            assert!(loaded[1..].iter().all(|memory| *memory == loaded[0]));
        }
    }
}

#[test]
fn too_little_memory_is_refused() {
    let file = Weights::tiny(5, true).version_0();
    let options = ModelOptions::default();
    let layout = Model::<f32>::layout(&options, &file).unwrap();
    let mut memory = Scratch::new(layout);
    let short = layout.size() - 1;
    assert_eq!(Model::<f32>::load(&options, &file, &mut memory[..short]).unwrap_err().status(), Status::Workspace);
}

#[test]
fn a_tokenizer_must_fit() {
    let file = Weights::tiny(6, true).version_0();
    let tokens = tokenizer(300);
    assert_eq!(load(&file, Some(&tokens)), Ok(()));
    assert_eq!(blame(&file, Some(&tokenizer(299))), "tokenizer");
    assert_eq!(blame(&file, Some(&tokenizer(301))), "tokenizer");
    assert_eq!(blame(&file, Some(&tokens[..tokens.len() - 1])), "tokenizer");
    assert_eq!(blame(&file, Some(&[])), "tokenizer");
    assert_eq!(blame(&file, Some(&patched(&tokens, 0, &[3, 0, 0, 0]))), "tokenizer");
    assert_eq!(blame(&file, Some(&patched(&tokens, 4, &f32::NAN.to_le_bytes()))), "tokenizer");

    let options = ModelOptions::default();
    let mut memory = memory::<f32>(&options, &file);
    let model = Model::<f32>::load(&options, &file, &mut memory).unwrap();
    assert_eq!(model.encode(b"a", &mut []).unwrap_err().status(), Status::Null);
    assert_eq!(model.token_text(0, 0).unwrap_err().status(), Status::Null);
}

/// Loads a damaged file and runs it: an error or a model, never more memory than a small multiple of the file.
fn survive(file: &[u8], tokenizer: Option<&[u8]>) -> bool {
    let options = ModelOptions { tokenizer, ..Default::default() };
    let Ok(layout) = Model::<f32>::layout(&options, file) else { return false };
    assert!(layout.size() <= 100 * file.len() + 4096, "{} bytes for {}", layout.size(), file.len());
    let mut memory = Scratch::new(layout);
    let Ok(model) = Model::<f32>::load(&options, file, &mut memory) else { return false };
    if tokenizer.is_some() {
        let mut ids = [0; 32];
        let count = model.encode("the é the thee".as_bytes(), &mut ids).unwrap();
        for &id in &ids[..count] {
            model.token_text(1, id).unwrap();
        }
    }
    let (host, config) = (Host::new(), DecodingConfig::new(3, 3, -1));
    let layout = Decoding::<f32>::layout(&host, &config, &model).unwrap();
    assert!(layout.size() <= 100 * file.len() + (1 << 20), "{} bytes for {}", layout.size(), file.len());
    let mut memory = Scratch::new(layout);
    let mut decoding = Decoding::<f32>::new(&host, &config, &model, &mut memory).unwrap();
    let length = model.shape().context.min(3);
    decoding.replace_row(&host, 0, Tensor::new([length], &[1, 2, 3]).unwrap()).unwrap();
    decoding
        .generate(&host, |_, id| {
            assert!((0..model.shape().vocab as i32).contains(&id));
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    true
}

#[test]
fn damaged_files_do_no_harm() {
    let mut random = Random(9);
    let tokens = tokenizer(300);
    let weights = Weights::tiny(10, false);
    let files = [weights.version_0(), weights.version_1(), weights.tkm(&tokens)];
    let rounds = rounds(10_000);
    let mut good = 0;
    for round in 0..rounds {
        let (mut file, mut tokens) = (files[round % 3].clone(), tokens.clone());
        let victim = if round % 4 == 3 { &mut tokens } else { &mut file };
        match random.below(4) {
            0 => victim.truncate(random.below(victim.len() + 1)),
            1 => victim.extend(vec![0; 1 + random.below(8)]),
            // The header is small, and most of what can go wrong is in it.
            kind => {
                for _ in 0..1 + random.below(3) {
                    let reach = if kind == 2 { 64 } else { victim.len() };
                    victim[random.below(reach)] ^= 1 << random.below(8);
                }
            }
        }
        if file.starts_with(b"TKM1") && file.len() > 64 && random.below(2) == 0 {
            seal(&mut file);
        }
        good += usize::from(survive(&file, Some(&tokens)));
    }
    println!("{good} of {rounds} damaged files are models all the same");
    assert!(good > 0 && good < rounds);
}
