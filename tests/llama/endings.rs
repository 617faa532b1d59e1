//! How rows end, and what is left of them.

use crate::common::Random;
use crate::models::Weights;
use crate::runs::{CONFIG, GREEDY, decode, output, prompt, some_rows, with_model};
use std::slice;
use tilekern::llama::{Decoding, DecodingConfig, HeadKind, RowSampling};
use tilekern::{Host, Scratch, Status, Tensor, TensorMut};

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
        // A step is delivered whole: what a callback has seen is what was generated, also behind the break.
        let mut seen = vec![Vec::new(); 2];
        for calls in [3, 1] {
            let (mut count, seen) = (0, &mut seen);
            let stop = |row: usize, id| {
                seen[row].push(id);
                count += 1;
                if count >= calls { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) }
            };
            decoding.generate(&host, stop).unwrap();
        }
        assert_eq!([seen[0].len(), seen[1].len()], [3, 3]);
        decoding.stop_row(0).unwrap();
        let mut ids = [0; 2];
        decoding.step(&host, TensorMut::new([2], &mut ids).unwrap()).unwrap();
        assert_eq!(ids[0], -1);
        seen[1].push(ids[1]);
        assert_eq!(output(&decoding, 2, 25), seen);
    });
}

#[test]
fn logits_are_those_of_the_last_step() {
    let file = Weights::tiny(24, true).version_0();
    with_model::<f32, _>(&file, HeadKind::Int8, |model| {
        let host = Host::new();
        let config = DecodingConfig { batch: 2, ..CONFIG };
        let mut memory = Scratch::new(Decoding::<f32>::layout(&host, &config, model).unwrap());
        memory.fill(0x42);
        let mut decoding = Decoding::<f32>::new(&host, &config, model, &mut memory).unwrap();
        (0..2).for_each(|row| decoding.set_row(row, &GREEDY).unwrap());
        let none = |decoding: &Decoding<'_, f32>, row| {
            let error = decoding.logits(row).unwrap_err();
            assert_eq!((error.status(), error.argument()), (Status::Invalid, "row"));
        };
        none(&decoding, 0);
        prompt(&host, &mut decoding, &[vec![1], vec![2]]).unwrap();
        none(&decoding, 0);
        let step = |decoding: &mut Decoding<'_, f32>| {
            let mut ids = [0; 2];
            decoding.step(&host, TensorMut::new([2], &mut ids).unwrap()).unwrap();
            ids
        };
        let best = |logits: &[f32]| (0..logits.len()).rev().max_by(|&a, &b| logits[a].total_cmp(&logits[b])).unwrap() as i32;
        let ids = step(&mut decoding);
        assert_eq!([0, 1].map(|row| best(decoding.logits(row).unwrap())), ids);
        // A row that ends keeps them until the next step, which it has no part in.
        let last = decoding.logits(0).unwrap().to_vec();
        decoding.stop_row(0).unwrap();
        assert_eq!(decoding.logits(0).unwrap(), last);
        let ids = step(&mut decoding);
        none(&decoding, 0);
        assert_eq!(best(decoding.logits(1).unwrap()), ids[1]);
        decoding.replace_row(&host, 1, Tensor::new([1], &[3]).unwrap()).unwrap();
        none(&decoding, 1);
        // Nor has anybody in a step that finds all ended.
        step(&mut decoding);
        decoding.stop_row(1).unwrap();
        step(&mut decoding);
        none(&decoding, 1);
    });
}

/// Room is for what can come, not for what may be asked.
#[test]
fn as_many_tokens_as_there_are() {
    let file = Weights::tiny(25, true).version_0();
    with_model::<f32, _>(&file, HeadKind::Int8, |model| {
        let host = Host::new();
        let bytes = |max_new| Decoding::<f32>::layout(&host, &DecodingConfig::new(5, max_new, -1), model).unwrap().size();
        assert_eq!(bytes(usize::MAX), bytes(48));
        let tokens = decode::<_, _, f32>(&host, model, DecodingConfig::new(5, 1000, -1), &[(vec![1, 2, 3], GREEDY)]).remove(0);
        assert_eq!(tokens.len(), 48 - 3 + 1);
    });
}
