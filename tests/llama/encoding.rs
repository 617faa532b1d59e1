//! Text to tokens and back.

use crate::common::Random;
use crate::models::{Weights, stories, tokenizer_of, with_model};
use tilekern::llama::Model;

/// Loads a model with these pieces and hands it over.
fn with_pieces(pieces: &[(f32, Vec<u8>)], then: impl FnOnce(&Model<'_>)) {
    let mut weights = Weights::tiny(7, true);
    weights.vocab = pieces.len();
    weights.embedding.resize(weights.vocab * weights.dim, 0.5);
    with_model(&weights.version_0(), &tokenizer_of(pieces), then);
}

fn encode(model: &Model<'_>, text: &[u8]) -> Vec<i32> {
    let mut ids = vec![-7; text.len() + 1];
    let count = model.encode(text, &mut ids).unwrap();
    assert!(ids[count..].iter().all(|&id| id == -7));
    ids.truncate(count);
    ids
}

/// llama2.c's algorithm over owned pieces: all pairs in each round.
fn encode_slowly(pieces: &[(f32, Vec<u8>)], text: &[u8]) -> Vec<i32> {
    let find = |piece: &[u8]| pieces.iter().position(|p| p.1 == piece);
    let mut ids = Vec::new();
    let blank: &[u8] = if text.is_empty() { b"" } else { b" " };
    for text in [blank, text] {
        let mut character = Vec::new();
        for (i, &b) in text.iter().enumerate() {
            character.push(b);
            if text.get(i + 1).is_some_and(|b| b & 0xC0 == 0x80) && character.len() < 4 {
                continue;
            }
            match find(&character) {
                Some(id) => ids.push(id),
                None => ids.extend(character.iter().map(|&b| usize::from(b) + 3)),
            }
            character.clear();
        }
    }
    loop {
        let mut best = None;
        for i in 1..ids.len() {
            let joined = find(&[&pieces[ids[i - 1]].1[..], &pieces[ids[i]].1].concat());
            if let Some(id) = joined
                && best.is_none_or(|(score, _, _)| pieces[id].0 > score)
            {
                best = Some((pieces[id].0, i, id));
            }
        }
        let Some((_, i, id)) = best else { break };
        ids[i - 1] = id;
        ids.remove(i);
    }
    ids.into_iter().map(|id| id as i32).collect()
}

fn base_pieces() -> Vec<(f32, Vec<u8>)> {
    let mut pieces: Vec<(f32, Vec<u8>)> = [&b"<unk>"[..], b"\n<s>\n", b"\n</s>\n"].iter().map(|p| (0.0, p.to_vec())).collect();
    pieces.extend((0..=255).map(|b| (0.0, format!("<0x{b:02X}>").into_bytes())));
    pieces
}

#[test]
fn encoding_equals_the_slow_algorithm() {
    let mut random = Random(8);
    const CHARACTERS: [&str; 8] = [" ", "a", "b", "c", "é", "日", "本", "."];
    for round in 0..60 {
        let mut pieces = base_pieces();
        if round % 2 == 0 {
            // A byte that begins no character, behind the blank before a text.
            pieces.extend([(-1.0, b" \x80".to_vec()), (-2.0, b" \x80a".to_vec())]);
        }
        pieces.extend(CHARACTERS[..5].iter().map(|c| (0.0, c.as_bytes().to_vec())));
        for _ in 0..random.below(60) {
            let length = 2 + random.below(4);
            let piece: String = (0..length).map(|_| CHARACTERS[random.below(8)]).collect();
            if pieces.iter().all(|p| p.1 != piece.as_bytes()) {
                pieces.push((-(random.below(40) as f32), piece.into_bytes()));
            }
        }
        with_pieces(&pieces, |model| {
            for _ in 0..20 {
                let length = random.below(50);
                let mut text: Vec<u8> = (0..length).flat_map(|_| CHARACTERS[random.below(8)].as_bytes().to_vec()).collect();
                if length > 0 && random.below(3) == 0 {
                    let at = random.below(text.len());
                    text[at] = random.bits() as u8;
                }
                if random.below(4) == 0 {
                    text.insert(0, 0x80);
                }
                assert_eq!(encode(model, &text), encode_slowly(&pieces, &text), "{text:?}");
            }
        });
    }
}

#[test]
fn encoding_counts_what_it_needs_and_writes_all_or_nothing() {
    with_pieces(&[base_pieces(), vec![(0.0, b" ".to_vec()), (-1.0, b" a".to_vec()), (0.0, b"a".to_vec())]].concat(), |model| {
        let mut ids = [-1; 3];
        assert_eq!(model.encode(b"a a", &mut ids[..0]), Ok(2));
        assert_eq!(model.encode(b"a a", &mut ids[..1]), Ok(2));
        assert_eq!(ids, [-1; 3]);
        assert_eq!(model.encode(b"a a", &mut ids[..2]), Ok(2));
        assert_eq!(ids, [260, 260, -1]);
        assert_eq!(model.encode(b"", &mut []), Ok(0));
    });
}

#[test]
fn long_texts_take_linear_time() {
    let pieces = [base_pieces(), vec![(0.0, b"a".to_vec()), (-1.0, b"aa".to_vec()), (-2.0, b"aaaa".to_vec())]].concat();
    with_pieces(&pieces, |model| {
        let text = vec![b'a'; 100_000];
        // A blank as a byte, then runs of four; each part of 1024 may end in the middle of one.
        let count = encode(model, &text).len();
        assert!((25_001..25_400).contains(&count), "{count}");
    });
}

#[test]
fn pieces_decode_to_bytes() {
    with_pieces(&[base_pieces(), vec![(0.0, b" a".to_vec()), (0.0, b"<0xZZ>".to_vec())]].concat(), |model| {
        assert_eq!(model.token_text(1, 259), Ok(&b"a"[..]));
        assert_eq!(model.token_text(5, 259), Ok(&b" a"[..]));
        assert_eq!(model.token_text(1, 3 + 32), Ok(&b" "[..]));
        assert_eq!(model.token_text(0, 3 + 0xFF), Ok(&[0xFF][..]));
        assert_eq!(model.token_text(0, 260), Ok(&b"<0xZZ>"[..]));
        assert_eq!(model.token_text(0, 261).unwrap_err().argument(), "id");
        assert_eq!(model.token_text(0, -1).unwrap_err().argument(), "id");
    });
}

#[test]
fn the_trained_tokenizer_gives_back_what_it_encodes() {
    let Some((file, tokens)) = stories() else { return };
    with_model(&file, &tokens, |model| {
        let text = "Once upon a time, there was a little girl named Lily. 日本 \u{1F600}\n";
        let ids = encode(model, text.as_bytes());
        assert_eq!(ids[..5], [403, 407, 261, 378, 432], "{ids:?}");
        let mut previous = 1;
        let mut decoded: Vec<u8> = Vec::new();
        for id in ids {
            decoded.extend(model.token_text(previous, id).unwrap());
            previous = id;
        }
        assert_eq!(decoded, text.as_bytes());
    });
}
