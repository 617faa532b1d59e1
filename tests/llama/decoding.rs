//! The decoding loop: what a row gives depends on nothing but its prompt and its sampling.

use crate::common::{Random, hosts};
use crate::forward::{Forward, cosine};
use crate::models::{Weights, memory, stories, tokenizer};
use half::{bf16, f16};
use std::slice;
use tilekern::llama::{Decoding, DecodingConfig, HeadKind, Model, ModelOptions, RowSampling};
use tilekern::{Error, Host, ParallelFor, Scratch, Status, Tensor, TensorMut};
use tilekern_kernels::element::Element;

const GREEDY: RowSampling = RowSampling { temperature: 0.0, top_k: 0, top_p: 1.0, min_p: 0.0, seed: 0 };

fn with_model<T: Element, R>(file: &[u8], head: HeadKind, then: impl FnOnce(&Model<'_, T>) -> R) -> R {
    let options = ModelOptions { head, tokenizer: None };
    let mut memory = memory::<T>(&options, file);
    then(&Model::load(&options, file, &mut memory).unwrap())
}

fn prompt<P: ParallelFor, T: Element, K: Element>(
    host: &Host<P>,
    decoding: &mut Decoding<'_, T, K>,
    prompts: &[Vec<i32>],
) -> Result<(), Error> {
    let columns = prompts.iter().map(Vec::len).max().unwrap().max(1);
    let tokens: Vec<i32> = prompts.iter().flat_map(|p| p.iter().copied().chain([-9; 99]).take(columns)).collect();
    let lengths: Vec<i32> = prompts.iter().map(|p| p.len() as i32).collect();
    let tokens = Tensor::new([prompts.len(), columns], &tokens)?;
    decoding.prompt(host, tokens, Tensor::new([prompts.len()], &lengths)?)
}

fn output<T: Element, K: Element>(decoding: &Decoding<'_, T, K>, batch: usize, max_new: usize) -> Vec<Vec<i32>> {
    let (mut ids, mut lengths) = (vec![-7; batch * max_new], vec![-7; batch]);
    let to = TensorMut::new([batch, max_new], &mut ids).unwrap();
    decoding.output(to, TensorMut::new([batch], &mut lengths).unwrap()).unwrap();
    let rows = ids.chunks(max_new).zip(lengths).map(|(row, length)| {
        assert!(row[length as usize..].iter().all(|&id| id == -1));
        row[..length as usize].to_vec()
    });
    rows.collect()
}

/// Runs rows to their end.
fn decode<P: ParallelFor, T: Element, K: Element>(
    host: &Host<P>,
    model: &Model<'_, T>,
    config: DecodingConfig,
    rows: &[(Vec<i32>, RowSampling)],
) -> Vec<Vec<i32>> {
    let config = DecodingConfig { batch: rows.len(), ..config };
    let mut memory = Scratch::new(Decoding::<T, K>::layout(host, &config, model).unwrap());
    memory.fill(0xA5);
    let mut decoding = Decoding::<T, K>::new(host, &config, model, &mut memory).unwrap();
    for (row, (_, sampling)) in rows.iter().enumerate() {
        decoding.set_row(row, sampling).unwrap();
    }
    let prompts: Vec<Vec<i32>> = rows.iter().map(|row| row.0.clone()).collect();
    prompt(host, &mut decoding, &prompts).unwrap();
    let mut seen = vec![Vec::new(); rows.len()];
    decoding
        .generate(host, |row, id| {
            seen[row].push(id);
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
    assert!(decoding.finished());
    assert_eq!(output(&decoding, rows.len(), config.max_new), seen);
    seen
}

/// Rows of all kinds: lengths, temperatures, stages and seeds.
fn some_rows(random: &mut Random, vocab: usize, count: usize, longest: usize) -> Vec<(Vec<i32>, RowSampling)> {
    let rows = (0..count).map(|i| {
        let prompt = (0..1 + random.below(longest)).map(|_| random.below(vocab) as i32).collect();
        let sampling = RowSampling {
            temperature: [0.0, 0.7, 1.0, 1.5][i % 4],
            top_k: [0, 5, 40, -1][random.below(4)],
            top_p: [1.0, 0.9, 0.0, 0.5][random.below(4)],
            min_p: [0.0, 0.05, -1.0][random.below(3)],
            seed: random.bits(),
        };
        (prompt, sampling)
    });
    rows.collect()
}

const CONFIG: DecodingConfig = DecodingConfig::new(30, 25, -1);

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
    fn logits(file: &[u8], head: HeadKind) -> Vec<f32> {
        with_model::<f32, _>(file, head, |model| {
            let host = Host::new();
            let config = DecodingConfig::new(30, 1, -1);
            let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, model).unwrap());
            let mut decoding = Decoding::<f32>::new(&host, &config, model, &mut memory).unwrap();
            decoding.set_row(0, &GREEDY).unwrap();
            prompt(&host, &mut decoding, &[(0..30).map(|i| 7 * i).collect()]).unwrap();
            decoding.step(&host, TensorMut::new([1], &mut [0]).unwrap()).unwrap();
            decoding.logits(0).unwrap().to_vec()
        })
    }
    for shared in [false, true] {
        let weights = Weights::tiny(15, shared);
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
fn a_row_ends_at_its_end_token() {
    let file = Weights::tiny(17, false).version_0();
    with_model::<f32, _>(&file, HeadKind::Int8, |model| {
        let host = Host::new();
        let rows = [(vec![1, 2, 3], GREEDY), (vec![40], RowSampling { seed: 5, ..Default::default() })];
        let free = decode::<_, _, f32>(&host, model, CONFIG, &rows);
        let end = free[0][4];
        let cut = |row: &[i32]| match row.iter().position(|&id| id == end) {
            Some(at) => row[..=at].to_vec(),
            None => row.to_vec(),
        };
        let config = DecodingConfig { batch: 2, end_id: end, ..CONFIG };
        assert_eq!(decode::<_, _, f32>(&host, model, config, &rows), [cut(&free[0]), cut(&free[1])]);

        // Step by step: an ended row goes on giving the end token, and its length stays.
        let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, model).unwrap());
        let mut decoding = Decoding::<f32>::new(&host, &config, model, &mut memory).unwrap();
        decoding.set_row(0, &GREEDY).unwrap();
        decoding.set_row(1, &rows[1].1).unwrap();
        let mut ids = [0; 2];
        decoding.step(&host, TensorMut::new([2], &mut ids).unwrap()).unwrap();
        assert_eq!((ids, decoding.finished()), ([end; 2], true), "no prompts yet");
        prompt(&host, &mut decoding, &[rows[0].0.clone(), rows[1].0.clone()]).unwrap();
        for step in 0..30 {
            decoding.step(&host, TensorMut::new([2], &mut ids).unwrap()).unwrap();
            for row in 0..2 {
                assert_eq!(ids[row], cut(&free[row]).get(step).copied().unwrap_or(end), "row {row}, step {step}");
            }
        }
        assert!(decoding.finished());
        assert_eq!(output(&decoding, 2, 25), [cut(&free[0]), cut(&free[1])]);
    });
}

#[test]
fn a_row_ends_with_the_context() {
    let file = Weights::tiny(18, true).version_0();
    with_model::<f32, _>(&file, HeadKind::Int8, |model| {
        let config = DecodingConfig::new(48, 1000, -1);
        let rows = [(vec![5; 48], GREEDY), (vec![6; 40], GREEDY), (vec![7], GREEDY)];
        let lengths: Vec<usize> = decode::<_, _, f32>(&Host::new(), model, config, &rows).iter().map(Vec::len).collect();
        // The last of the 48 positions still gives a token.
        assert_eq!(lengths, [1, 9, 48]);
    });
}

#[test]
fn a_new_prompt_in_a_row_leaves_the_others_alone() {
    let mut random = Random(5);
    let file = Weights::tiny(19, false).version_0();
    with_model::<f32, _>(&file, HeadKind::Int8, |model| {
        let host = Host::new();
        let rows = some_rows(&mut random, 300, 3, 10);
        let next = some_rows(&mut random, 300, 1, 30).remove(0);
        let expected = decode::<_, _, f32>(&host, model, CONFIG, &rows);
        let expected_next = decode::<_, _, f32>(&host, model, CONFIG, slice::from_ref(&next)).remove(0);
        let config = DecodingConfig { batch: 3, ..CONFIG };
        let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, model).unwrap());
        let mut decoding = Decoding::<f32>::new(&host, &config, model, &mut memory).unwrap();
        for round in 0..2 {
            (0..3).for_each(|row| decoding.set_row(row, &rows[row].1).unwrap());
            prompt(&host, &mut decoding, &rows.iter().map(|row| row.0.clone()).collect::<Vec<_>>()).unwrap();
            let mut ids = [0; 3];
            for _ in 0..7 {
                decoding.step(&host, TensorMut::new([3], &mut ids).unwrap()).unwrap();
            }
            decoding.set_row(1, &next.1).unwrap();
            decoding.replace_row(&host, 1, Tensor::new([next.0.len()], &next.0).unwrap()).unwrap();
            decoding.generate(&host, |_, _| std::ops::ControlFlow::Continue(())).unwrap();
            let found = output(&decoding, 3, 25);
            assert_eq!(found, [expected[0].clone(), expected_next.clone(), expected[2].clone()], "round {round}");
            decoding.reset();
            assert!(decoding.finished());
            assert_eq!(output(&decoding, 3, 25), [[], [], []] as [[i32; 0]; 3]);
        }
    });
}

#[test]
fn a_row_can_be_stopped_and_a_callback_can_break() {
    let file = Weights::tiny(20, true).version_0();
    with_model::<f32, _>(&file, HeadKind::Int8, |model| {
        let host = Host::new();
        let config = DecodingConfig { batch: 2, ..CONFIG };
        let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, model).unwrap());
        let mut decoding = Decoding::<f32>::new(&host, &config, model, &mut memory).unwrap();
        prompt(&host, &mut decoding, &[vec![1], vec![2]]).unwrap();
        let mut calls = 0;
        let stop = |_, _| {
            calls += 1;
            if calls == 5 { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
        };
        decoding.generate(&host, stop).unwrap();
        assert_eq!(calls, 5);
        decoding.stop_row(0).unwrap();
        let mut ids = [0; 2];
        decoding.step(&host, TensorMut::new([2], &mut ids).unwrap()).unwrap();
        assert_eq!(ids[0], -1);
        let lengths: Vec<usize> = output(&decoding, 2, 25).iter().map(Vec::len).collect();
        assert_eq!(lengths, [3, 4]);
    });
}

#[test]
fn stages_do_what_their_names_say() {
    let mut weights = Weights::tiny(21, true);
    weights.vocab = 1500;
    let mut random = Random(6);
    weights.embedding = (0..1500 * 16).map(|_| random.unit()).collect();
    with_model::<f32, _>(&weights.version_0(), HeadKind::Int8, |model| {
        let host = Host::new();
        let run = |sampling: RowSampling| decode::<_, _, f32>(&host, model, CONFIG, &[(vec![1, 2], sampling)]).remove(0);
        let base = RowSampling { temperature: 1.3, seed: 3, ..Default::default() };
        let (greedy, free) = (run(GREEDY), run(base));
        assert_ne!(greedy, free);
        assert_ne!(run(RowSampling { seed: 4, ..base }), free);
        for one in [
            RowSampling { top_k: 1, ..base },
            RowSampling { top_p: 1e-9, ..base },
            RowSampling { min_p: 1.0, ..base },
            RowSampling { temperature: 1e-60, ..base },
            RowSampling { temperature: 1e-30, ..base },
        ] {
            assert_eq!(run(one), greedy, "{one:?}");
        }
        for off in [
            RowSampling { top_k: 1500, ..base },
            RowSampling { top_k: i64::MAX, ..base },
            RowSampling { top_k: i64::MIN, ..base },
            RowSampling { top_p: 0.0, ..base },
            RowSampling { top_p: f64::NAN, ..base },
            RowSampling { min_p: f64::NAN, ..base },
        ] {
            assert_eq!(run(off), free, "{off:?}");
        }
        // With more than the operation's 1024, the tokens are still among the k largest.
        let config = DecodingConfig::new(2, 1, -1);
        let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, model).unwrap());
        let mut decoding = Decoding::<f32>::new(&host, &config, model, &mut memory).unwrap();
        decoding.set_row(0, &RowSampling { temperature: 100.0, top_k: 1100, ..base }).unwrap();
        prompt(&host, &mut decoding, &[vec![1, 2]]).unwrap();
        let mut ids = [0];
        decoding.step(&host, TensorMut::new([1], &mut ids).unwrap()).unwrap();
        let logits = decoding.logits(0).unwrap();
        assert_eq!(logits.iter().filter(|&&x| x > f32::NEG_INFINITY).count(), 1100);
        assert!(logits[ids[0] as usize] > f32::NEG_INFINITY);
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
        assert!(layout(&DecodingConfig { max_new: usize::MAX, ..CONFIG }).is_err());

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
