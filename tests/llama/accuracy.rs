//! The int8 model against a float forward pass of the trained model, and the text that models write.

use crate::common::hosts;
use crate::forward::{Forward, argmax, cosine, read_version_0};
use crate::models::{memory, stories, with_model};
use tilekern::llama::{Decoding, DecodingConfig, HeadKind, Model, ModelOptions, RowSampling};
use tilekern::{Host, Scratch, Tensor, TensorMut};

/// Natural logarithm of the probability of `id`.
fn log_probability(logits: &[f32], id: i32) -> f64 {
    let top = logits.iter().copied().fold(f32::MIN, f32::max);
    let sum: f64 = logits.iter().map(|&x| f64::from(x - top).exp()).sum();
    f64::from(logits[id as usize] - top) - sum.ln()
}

#[test]
fn int8_logits_are_close_to_float_ones() {
    let Some((file, _)) = stories() else { return };
    const POSITIONS: usize = 256;
    let weights = read_version_0(&file);
    let mut reference = Forward::new(&weights);
    let mut tokens = vec![1];
    let mut expected = Vec::new();
    for i in 0..POSITIONS {
        expected.push(reference.push(tokens[i]));
        tokens.push(argmax(&expected[i]) as i32);
    }

    // Along the reference's own text: where the model would leave it, the row is led back.
    let host = Host::new();
    for head in [HeadKind::Int8, HeadKind::Float] {
        let options = ModelOptions { head, tokenizer: None };
        let mut memory = memory::<f32>(&options, &file);
        let model = Model::<f32>::load(&options, &file, &mut memory).unwrap();
        let config = DecodingConfig::new(POSITIONS, POSITIONS, -1);
        let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, &model).unwrap());
        let mut decoding = Decoding::<f32>::new(&host, &config, &model, &mut memory).unwrap();
        decoding.set_row(0, &RowSampling { temperature: 0.0, ..Default::default() }).unwrap();
        let (mut same, mut cosines, mut float, mut int8) = (0, 0.0, 0.0, 0.0);
        let mut id = [-1];
        for i in 0..POSITIONS {
            if id[0] != tokens[i] {
                decoding.replace_row(&host, 0, Tensor::new([i + 1], &tokens).unwrap()).unwrap();
            }
            decoding.step(&host, TensorMut::new([1], &mut id).unwrap()).unwrap();
            let logits = decoding.logits(0).unwrap();
            assert_eq!(argmax(logits), id[0] as usize);
            same += usize::from(id[0] == tokens[i + 1]);
            cosines += cosine(logits, &expected[i]);
            float -= log_probability(&expected[i], tokens[i + 1]);
            int8 -= log_probability(logits, tokens[i + 1]);
        }
        let n = POSITIONS as f64;
        let (same, cosines, perplexity) = (same as f64 / n, cosines / n, ((int8 - float) / n).exp());
        println!("{head:?} head: mean cosine {cosines:.6}, top-1 agreement {same:.4}, perplexity ratio {perplexity:.5}");
        assert!(cosines >= 0.9998);
        assert!(same >= 0.97);
        assert!((perplexity - 1.0).abs() <= 0.003);
    }
}

/// The text of a model with a tokenizer, without its prompt.
fn text(model: &Model<'_>, host: &Host, prompt: &str, steps: usize, sampling: RowSampling) -> String {
    let mut tokens = vec![1; prompt.len() + 2];
    let count = 1 + model.encode(prompt.as_bytes(), &mut tokens[1..]).unwrap();
    let config = DecodingConfig::new(count, steps, 2);
    let mut memory = Scratch::new(Decoding::<f32>::layout(host, &config, model).unwrap());
    let mut decoding = Decoding::<f32>::new(host, &config, model, &mut memory).unwrap();
    decoding.set_row(0, &sampling).unwrap();
    let tokens = Tensor::new([1, count], &tokens).unwrap();
    decoding.prompt(host, tokens, Tensor::new([1], &[count as i32]).unwrap()).unwrap();
    let (mut bytes, mut previous) = (Vec::new(), 1);
    decoding
        .generate(host, |_, id| {
            if id == 1 || id == 2 {
                return std::ops::ControlFlow::Break(());
            }
            bytes.extend(model.token_text(previous, id).unwrap());
            previous = id;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[test]
fn the_trained_model_tells_its_story() {
    let Some((file, tokenizer)) = stories() else { return };
    let greedy = RowSampling { temperature: 0.0, ..Default::default() };
    with_model(&file, &tokenizer, |model| {
        for host in hosts() {
            let story = text(model, &host, "", 60, greedy);
            assert!(story.starts_with("Once upon a time, there was a little girl named Lily"), "{:?}: {story}", host.isa());
        }
    });
}

/// The words of a text that are in the list, and the most often repeated line. Words are letters and apostrophes.
fn judge(text: &str, words: &[&str]) -> (f64, usize) {
    let between = |c: char| !(c.is_alphabetic() || c == '\'');
    // The last word may be cut.
    let whole = &text[..text.rfind(between).unwrap_or(0)];
    let found: Vec<String> = whole.split(between).filter(|w| !w.is_empty()).map(str::to_lowercase).collect();
    let known = found.iter().filter(|w| words.contains(&w.as_str())).count();
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let repeated = lines.iter().map(|line| lines.iter().filter(|other| other == &line).count()).max().unwrap_or(0);
    assert!(found.len() > 20, "{text}");
    (known as f64 / found.len() as f64, repeated)
}

#[test]
fn the_default_model_writes_words() {
    let assets = concat!(env!("CARGO_MANIFEST_DIR"), "/assets");
    let file = std::fs::read(format!("{assets}/default.tkm")).unwrap();
    let words = std::fs::read_to_string(format!("{assets}/default-words.txt")).unwrap();
    let words: Vec<&str> = words.lines().collect();
    let options = ModelOptions::default();
    let mut memory = memory::<f32>(&options, &file);
    let model = Model::<f32>::load(&options, &file, &mut memory).unwrap();
    let host = Host::new();
    let greedy = RowSampling { temperature: 0.0, ..Default::default() };
    let (known, repeated) = judge(&text(&model, &host, "", 400, greedy), &words);
    println!("greedy: {known:.4} of the words known, a line at most {repeated} times");
    assert!(known >= 0.95 && repeated < 3);
    for seed in 0..5 {
        let sampling = RowSampling { temperature: 0.8, top_p: 0.95, seed, ..Default::default() };
        let (known, repeated) = judge(&text(&model, &host, "", 400, sampling), &words);
        println!("seed {seed}: {known:.4} of the words known, a line at most {repeated} times");
        assert!(known >= 0.9 && repeated < 3);
    }
}
