//! The decoding loop: what a row gives depends on nothing but its prompt and its sampling.

use crate::common::{Counted, Random, hosts};
use crate::forward::{Forward, cosine};
use crate::models::{Weights, stories, tokenizer};
use crate::runs::{CONFIG, GREEDY, decode, output, prompt, some_rows, with_model};
use half::{bf16, f16};
use std::slice;
use tilekern::llama::{Decoding, DecodingConfig, HeadKind, RowSampling};
use tilekern::{Error, Host, Scratch, Status, Tensor, TensorMut};
use tilekern_kernels::element::Element;

#[test]
fn a_row_in_a_batch_is_the_row_alone_on_every_instruction_set() {
    let mut random = Random(1);
    let file = Weights::tiny(11, false).version_0();
    for head in [HeadKind::Int8, HeadKind::Float] {
        with_model::<f32, _>(&file, head, |model| {
            let rows = some_rows(&mut random, 300, 6, 20);
            let expected = decode::<_, _, f32>(&Host::new(), model, CONFIG, &rows);
            assert!(expected.iter().all(|row| row.len() == 25));
            for host in hosts() {
                assert_eq!(decode::<_, _, f32>(&host, model, CONFIG, &rows), expected, "{:?}", host.isa());
                for (row, expected) in rows.iter().zip(&expected) {
                    let alone = decode::<_, _, f32>(&host, model, CONFIG, slice::from_ref(row)).remove(0);
                    assert_eq!(&alone, expected, "{:?}", host.isa());
                }
            }
        });
    }
}

#[test]
#[cfg(feature = "rayon")]
fn threads_change_nothing() {
    let mut random = Random(2);
    let file = Weights::tiny(12, true).version_1();
    for head in [HeadKind::Int8, HeadKind::Float] {
        with_model::<f32, _>(&file, head, |model| {
            let rows = some_rows(&mut random, 300, 5, 30);
            let expected = decode::<_, _, f32>(&Host::new(), model, CONFIG, &rows);
            for threads in [1, 2, 3] {
                let host = Host::with(tilekern::Isa::detect(), tilekern::Rayon::new(threads).unwrap()).unwrap();
                assert_eq!(decode::<_, _, f32>(&host, model, CONFIG, &rows), expected, "{threads}");
            }
        });
    }
}

#[test]
fn the_layers_enter_a_pool_once() {
    // So many rows that a tiny layer is more than a task.
    let (file, batch) = (Weights::tiny(15, true).version_0(), 5000);
    with_model::<f32, _>(&file, HeadKind::Float, |model| {
        let pool = Counted::default();
        let host = Host::best(&pool);
        let config = DecodingConfig { batch, ..CONFIG };
        let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, model).unwrap());
        let mut decoding = Decoding::<f32>::new(&host, &config, model, &mut memory).unwrap();
        prompt(&host, &mut decoding, &vec![vec![1]; batch]).unwrap();
        (0..batch).for_each(|row| decoding.set_row(row, &GREEDY).unwrap());
        let mut ids = vec![-7; batch];
        pool.counts();
        decoding.step(&host, TensorMut::new([batch], &mut ids).unwrap()).unwrap();
        // The rows choose outside.
        assert_eq!(pool.counts(), [1, 1]);
        let alone = decode::<_, _, f32>(&Host::new(), model, CONFIG, &[(vec![1], GREEDY)]);
        assert_eq!(ids, vec![alone[0][0]; batch]);
    });
}

#[test]
#[cfg(feature = "rayon")]
fn more_workers_than_planned_are_refused() {
    let file = Weights::tiny(13, true).version_0();
    with_model::<f32, _>(&file, HeadKind::Int8, |model| {
        let host = Host::new();
        let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &CONFIG, model).unwrap());
        let mut decoding = Decoding::<f32>::new(&host, &CONFIG, model, &mut memory).unwrap();
        prompt(&host, &mut decoding, &[vec![1]]).unwrap();
        let more = Host::with(tilekern::Isa::detect(), tilekern::Rayon::new(2).unwrap()).unwrap();
        let mut ids = [-7];
        let error = decoding.step(&more, TensorMut::new([1], &mut ids).unwrap()).unwrap_err();
        assert_eq!((error.status(), ids), (Status::Workspace, [-7]));

        // Whoever asked for more of them has room for more, however many came first.
        let mut memory = Scratch::new(Decoding::<f32>::layout(&more, &CONFIG, model).unwrap());
        let mut decoding = Decoding::<f32>::new(&host, &CONFIG, model, &mut memory).unwrap();
        prompt(&more, &mut decoding, &[vec![1]]).unwrap();
        let mut expected = [-7];
        decoding.step(&more, TensorMut::new([1], &mut ids).unwrap()).unwrap();
        prompt(&host, &mut decoding, &[vec![1]]).unwrap();
        decoding.step(&host, TensorMut::new([1], &mut expected).unwrap()).unwrap();
        assert!(ids == expected && ids != [-7]);
    });
}

#[test]
fn a_prompt_at_once_is_the_prompt_step_by_step() {
    let mut random = Random(3);
    let mut weights = Weights::tiny(14, false);
    weights.context = 200;
    with_model::<f32, _>(&weights.version_0(), HeadKind::Int8, |model| {
        let host = Host::new();
        let first: Vec<i32> = (0..3).map(|_| random.below(300) as i32).collect();
        let all = decode::<_, _, f32>(&host, model, DecodingConfig::new(3, 190, -1), &[(first.clone(), GREEDY)]).remove(0);
        // Prompts around the 64 tokens that run together.
        for known in [1, 60, 61, 62, 63, 125, 126, 150] {
            let longer = [&first[..], &all[..known]].concat();
            let config = DecodingConfig::new(longer.len(), 190 - known, -1);
            assert_eq!(decode::<_, _, f32>(&host, model, config, &[(longer, GREEDY)]), [all[known..].to_vec()], "{known}");
        }
    });
}

#[test]
fn formats_and_heads_agree() {
    fn logits_of<T: Element, K: Element>(file: &[u8], head: HeadKind) -> Vec<f32> {
        with_model::<T, _>(file, head, |model| {
            let host = Host::new();
            let config = DecodingConfig::new(30, 1, -1);
            let mut memory = Scratch::new(Decoding::<T, K>::layout(&host, &config, model).unwrap());
            let mut decoding = Decoding::<T, K>::new(&host, &config, model, &mut memory).unwrap();
            decoding.set_row(0, &GREEDY).unwrap();
            prompt(&host, &mut decoding, &[(0..30).map(|i| 7 * i).collect()]).unwrap();
            decoding.step(&host, TensorMut::new([1], &mut [0]).unwrap()).unwrap();
            decoding.logits(0).unwrap().to_vec()
        })
    }
    let logits = logits_of::<f32, f32>;
    for (shared, kv_heads) in [(false, 2), (true, 2), (false, 4)] {
        let weights = Weights::with_heads(15, shared, kv_heads);
        let expected = logits(&weights.version_0(), HeadKind::Int8);
        assert_eq!(logits(&weights.version_1(), HeadKind::Int8), expected);
        // The head, and the embedding of a .tkm file, differ by their rounding.
        for other in [logits(&weights.version_0(), HeadKind::Float), logits(&weights.tkm(&tokenizer(300)), HeadKind::Int8)] {
            let cosine = cosine(&other, &expected);
            assert!(cosine > 0.999 && cosine < 1.0, "{cosine}");
        }
        // The float forward pass, which shares nothing but the weights.
        let mut forward = Forward::new(&weights);
        let float = (0..30).map(|i| forward.push(7 * i)).last().unwrap();
        assert!(cosine(&float, &expected) > 0.999, "{}", cosine(&float, &expected));
        for head in [HeadKind::Int8, HeadKind::Float] {
            let file = weights.version_0();
            let close = |found: Vec<f32>, least: f64| {
                let cosine = cosine(&float, &found);
                assert!(cosine > least && found != expected, "{head:?}, {kv_heads} heads: {cosine}");
            };
            close(logits_of::<f16, f16>(&file, head), 0.999);
            close(logits_of::<f32, f16>(&file, head), 0.999);
            close(logits_of::<bf16, f32>(&file, head), 0.998);
            close(logits_of::<f32, bf16>(&file, head), 0.998);
        }
    }
}

#[test]
fn activations_and_caches_of_half_precision_run() {
    fn run<T: Element, K: Element>(file: &[u8]) {
        for head in [HeadKind::Int8, HeadKind::Float] {
            with_model::<T, _>(file, head, |model| {
                let rows = some_rows(&mut Random(4), 300, 3, 20);
                let expected = decode::<_, T, K>(&Host::new(), model, CONFIG, &rows);
                for host in hosts() {
                    assert_eq!(decode::<_, T, K>(&host, model, CONFIG, &rows), expected, "{:?}", host.isa());
                }
            });
        }
    }
    let file = Weights::tiny(16, true).version_0();
    run::<f16, f16>(&file);
    run::<bf16, f32>(&file);
    run::<f32, bf16>(&file);
}

#[test]
fn rows_choose_from_edited_logits() {
    let rows = [(vec![1, 9, 4], GREEDY), (vec![7], RowSampling { temperature: 1.3, top_k: 40, top_p: 0.9, seed: 5, ..GREEDY })];
    let file = Weights::tiny(25, true).version_0();
    with_model::<f32, _>(&file, HeadKind::Int8, |model| {
        let host = Host::new();
        let plain = decode::<_, _, f32>(&host, model, CONFIG, &rows);
        let config = DecodingConfig { batch: 2, ..CONFIG };
        let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, model).unwrap());
        let mut decoding = Decoding::<f32>::new(&host, &config, model, &mut memory).unwrap();
        rows.iter().enumerate().for_each(|(row, (_, sampling))| decoding.set_row(row, sampling).unwrap());
        prompt(&host, &mut decoding, &rows.clone().map(|row| row.0)).unwrap();
        let mut ids = [-7; 2];
        // What is not edited is chosen as without.
        let mut seen = Vec::new();
        let to = TensorMut::new([2], &mut ids).unwrap();
        decoding.step_with(&host, to, |row, logits| seen.push((row, logits.len()))).unwrap();
        assert_eq!((seen, ids), (vec![(0, 300), (1, 300)], [plain[0][0], plain[1][0]]));
        // Row 0 may not take its best; row 1 has two tokens left.
        let mut best = 0;
        let to = TensorMut::new([2], &mut ids).unwrap();
        let edit = |row: usize, logits: &mut [f32]| {
            let barred: &dyn Fn(usize) -> bool = match row {
                0 => {
                    let largest = |best, i| if logits[i] > logits[best] { i } else { best };
                    let first = (1..300).fold(0, largest);
                    assert_eq!(first as i32, plain[0][1]);
                    best = (0..300).filter(|&i| i != first).reduce(largest).unwrap();
                    &move |i| i == first
                }
                _ => &|i| i != 17 && i != 203,
            };
            (0..300).filter(|&i| barred(i)).for_each(|i| logits[i] = f32::NEG_INFINITY);
        };
        decoding.step_with(&host, to, edit).unwrap();
        assert_eq!(ids[0], best as i32);
        assert!([17, 203].contains(&ids[1]), "{}", ids[1]);
        assert_eq!(decoding.logits(0).unwrap()[plain[0][1] as usize], f32::NEG_INFINITY);
        assert_eq!(decoding.logits(1).unwrap().iter().filter(|x| **x > f32::NEG_INFINITY).count(), 2);
        // A row that has ended is nobody's to edit, and one of which nothing is left takes token 0.
        decoding.stop_row(1).unwrap();
        let to = TensorMut::new([2], &mut ids).unwrap();
        let edit = |row: usize, logits: &mut [f32]| {
            assert_eq!(row, 0);
            logits.fill(f32::NEG_INFINITY);
        };
        decoding.step_with(&host, to, edit).unwrap();
        assert_eq!(ids, [0, -1]);
    });
}

#[test]
fn mistakes_are_refused_and_change_nothing() {
    let file = Weights::tiny(22, true).version_0();
    with_model::<f32, _>(&file, HeadKind::Int8, |model| {
        let host = Host::new();
        let layout = |config: &DecodingConfig| Decoding::<f32>::layout(&host, config, model).map_err(|e| e.argument());
        assert_eq!(layout(&DecodingConfig { batch: 0, ..CONFIG }), Err("batch"));
        assert_eq!(layout(&DecodingConfig { max_prompt: 0, ..CONFIG }), Err("max_prompt"));
        assert_eq!(layout(&DecodingConfig { max_new: 0, ..CONFIG }), Err("max_new"));
        assert_eq!(layout(&DecodingConfig { end_id: 300, ..CONFIG }), Err("end_id"));
        assert_eq!(layout(&DecodingConfig { end_id: -2, ..CONFIG }), Err("end_id"));
        assert!(layout(&DecodingConfig { batch: usize::MAX / 4, ..CONFIG }).is_err());

        let config = DecodingConfig { batch: 2, ..CONFIG };
        let mut memory = Scratch::new(layout(&config).unwrap());
        let short = memory.len() - 1;
        let error = Decoding::<f32>::new(&host, &config, model, &mut memory[..short]).unwrap_err();
        assert_eq!(error.status(), Status::Workspace);
        let mut decoding = Decoding::<f32>::new(&host, &config, model, &mut memory).unwrap();
        (0..2).for_each(|row| decoding.set_row(row, &GREEDY).unwrap());
        prompt(&host, &mut decoding, &[vec![1], vec![2]]).unwrap();
        let blame = |result: Result<(), Error>| result.map_err(|e| (e.status(), e.argument())).unwrap_err();
        let invalid = |argument| (Status::Invalid, argument);
        assert_eq!(blame(prompt(&host, &mut decoding, &[vec![1], vec![]])), invalid("lengths"));
        assert_eq!(blame(prompt(&host, &mut decoding, &[vec![1], vec![300]])), invalid("tokens"));
        assert_eq!(blame(prompt(&host, &mut decoding, &[vec![1], vec![-1]])), invalid("tokens"));
        assert_eq!(blame(prompt(&host, &mut decoding, &[vec![1], vec![1; 31]])), invalid("tokens"));
        assert_eq!(blame(prompt(&host, &mut decoding, &[vec![1]])), invalid("tokens"));
        let tokens = [1, 1];
        let result = decoding.prompt(&host, Tensor::new([2, 1], &tokens).unwrap(), Tensor::new([2], &[1, 2]).unwrap());
        assert_eq!(blame(result), invalid("lengths"));
        assert_eq!(blame(decoding.replace_row(&host, 2, Tensor::new([1], &[1]).unwrap())), invalid("row"));
        assert_eq!(blame(decoding.replace_row(&host, 0, Tensor::new([0], &[]).unwrap())), invalid("tokens"));
        assert_eq!(blame(decoding.set_row(2, &GREEDY)), invalid("row"));
        for temperature in [-1.0, -1e-300, f64::NAN, f64::INFINITY, 1e60] {
            assert_eq!(blame(decoding.set_row(0, &RowSampling { temperature, ..GREEDY })), invalid("temperature"));
        }
        let mut one = [0];
        assert_eq!(blame(decoding.step(&host, TensorMut::new([1], &mut one).unwrap())), invalid("ids"));

        decoding.generate(&host, |_, _| std::ops::ControlFlow::Continue(())).unwrap();
        let rows = [(vec![1], GREEDY), (vec![2], GREEDY)];
        assert_eq!(output(&decoding, 2, 25), decode::<_, _, f32>(&host, model, CONFIG, &rows));
    });
}

#[test]
fn a_vocabulary_beyond_the_sampling_is_refused() {
    for (vocab, status) in [(1 << 20, None), ((1 << 20) + 1, Some(Status::Tiling))] {
        let mut weights = Weights::tiny(24, true);
        weights.vocab = vocab;
        weights.embedding = (0..vocab * weights.dim).map(|i| (i % 7) as f32 - 3.0).collect();
        with_model::<f32, _>(&weights.version_0(), HeadKind::Float, |model| {
            let refused = Decoding::<f32>::layout(&Host::new(), &CONFIG, model).err();
            assert_eq!(refused.map(|error| error.status()), status);
            assert_eq!(refused.map(|error| error.argument()), status.map(|_| "model"));
        });
    }
}

/// FNV-1a over the tokens: the same on every machine.
#[test]
fn golden_tokens() {
    let rows = some_rows(&mut Random(8), 300, 8, 20);
    let mut digests = Vec::new();
    for (head, shared) in [(HeadKind::Int8, false), (HeadKind::Float, true)] {
        with_model::<f32, _>(&Weights::tiny(23, shared).version_0(), head, |model| {
            let tokens = decode::<_, _, f32>(&Host::new(), model, CONFIG, &rows).concat();
            let hash = |hash: u64, id: i32| (hash ^ id as u64).wrapping_mul(0x0100_0000_01B3);
            digests.push(tokens.into_iter().fold(0xCBF2_9CE4_8422_2325, hash));
        });
    }
    assert_eq!(digests, [0x5366_CA2F_F6A7_EE77, 0x5F1A_9F15_0988_6E7B], "{digests:#X?}");
}

#[test]
fn the_trained_model_gives_the_same_everywhere() {
    let Some((file, _)) = stories() else { return };
    with_model::<f32, _>(&file, HeadKind::Int8, |model| {
        let config = DecodingConfig::new(100, 60, 1);
        let rows = some_rows(&mut Random(7), 512, 4, 100);
        let expected = decode::<_, _, f32>(&Host::new(), model, config, &rows);
        for host in hosts() {
            assert_eq!(decode::<_, _, f32>(&host, model, config, &rows), expected, "{:?}", host.isa());
            assert_eq!(decode::<_, _, f32>(&host, model, config, &rows[1..2]), expected[1..2], "{:?}", host.isa());
        }
        #[cfg(feature = "rayon")]
        {
            let host = Host::with(tilekern::Isa::detect(), tilekern::Rayon::new(2).unwrap()).unwrap();
            assert_eq!(decode::<_, _, f32>(&host, model, config, &rows), expected);
        }
    });
}
