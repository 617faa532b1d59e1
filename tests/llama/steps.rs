//! A decoding loop that is made of single operations, over prompts of several lengths (document 003, sections 4.4 to 4.10): each row
//! gets what it gets alone, by plain arithmetic in `f64`.

use crate::common::{hosts, run};
use tilekern::llama::check_finished;
use tilekern::ops::{RemovePromptTokens, TopKSampling, TopPSampling, UpdateLogits};
use tilekern::{Error, Host, Tensor, TensorMut};

const VOCABULARY: usize = 50;
const END: i32 = 49;
/// Positions of the longest row.
const POSITIONS: usize = 40;
/// The prompts of section 4.10: token, or 0 behind the end.
const PROMPTS: [[i32; 8]; 4] =
    [[1, 2, 3, 4, 5, 0, 0, 0], [1, 2, 3, 4, 0, 0, 0, 0], [1, 2, 3, 4, 5, 6, 0, 0], [1, 2, 3, 4, 5, 6, 7, 0]];
const LENGTHS: [i32; 4] = [5, 4, 6, 7];
const SHORTEST: usize = 4;

/// What a model would say behind a token of a row: a few good tokens, and the end more and more.
fn logits(row: usize, token: i32, position: usize) -> Vec<f32> {
    let mut logits: Vec<f32> = (0..VOCABULARY).map(|i| -1.0 - 0.01 * i as f32).collect();
    let from = token as usize * 7 + position * 3 + row * 13;
    for (i, logit) in [2.0, 1.25, 1.0, 0.5].into_iter().enumerate() {
        logits[(from + 11 * i) % (VOCABULARY - 1)] = logit;
    }
    logits[END as usize] = -1.0 + 0.06 * position as f32;
    logits
}

fn random(row: usize, position: usize) -> f32 {
    ((row * 7919 + position * 104_729 + 12_345) % 9973) as f32 / 9973.0
}

#[derive(Clone, Copy, Debug)]
enum Choice {
    TopK { k: usize, diversity_rate: f64 },
    TopP(f64),
}

impl Choice {
    /// By definition: the first rank whose running sum reaches the random share of what is kept.
    fn of(self, logits: &[f32], random: f32) -> i32 {
        let mut order: Vec<usize> = (0..logits.len()).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        let mut weights: Vec<f64> = match self {
            Choice::TopK { diversity_rate, .. } => {
                order.iter().enumerate().map(|(rank, &i)| (f64::from(logits[i]) + diversity_rate * rank as f64).exp()).collect()
            }
            Choice::TopP(_) => order.iter().map(|&i| f64::from(logits[i]).exp()).collect(),
        };
        let sum = |weights: &[f64], n: usize| weights[..n].iter().sum::<f64>();
        let kept = match self {
            Choice::TopK { k, .. } => k,
            Choice::TopP(p) => {
                let all = sum(&weights, weights.len());
                weights.iter_mut().for_each(|weight| *weight /= all);
                (1..=weights.len()).find(|&n| sum(&weights, n) > p).unwrap_or(weights.len())
            }
        };
        let share = f64::from(random) * sum(&weights, kept);
        order[(0..kept).find(|&rank| sum(&weights, rank + 1) >= share).unwrap()] as i32
    }

    /// What a row generates by itself.
    fn alone(self, row: usize) -> Vec<i32> {
        let (mut token, mut tokens) = (PROMPTS[row][LENGTHS[row] as usize - 1], vec![]);
        for position in LENGTHS[row] as usize..POSITIONS {
            token = self.of(&logits(row, token, position - 1), random(row, position));
            tokens.push(token);
            if token == END {
                break;
            }
        }
        tokens
    }

    /// What the operations generate, a row a line and -1 behind its end.
    fn together(self, host: &Host) -> Result<(Vec<i32>, [i32; 4]), Error> {
        const B: usize = PROMPTS.len();
        let mask = PROMPTS.as_flattened().iter().map(|&token| u8::from(token != 0)).collect::<Vec<u8>>();
        let (mut lengths, mut finished, mut word_ids) = ([0; B], [0; B], vec![]);
        let mut input: Vec<Vec<i32>> = PROMPTS.iter().map(|prompt| prompt[..SHORTEST].to_vec()).collect();
        for cur_pos in SHORTEST..POSITIONS {
            let first = cur_pos - input[0].len();
            let model = |(row, tokens): (usize, &Vec<i32>)| -> Vec<f32> {
                tokens.iter().enumerate().flat_map(|(i, &token)| logits(row, token, first + i)).collect()
            };
            let all: Vec<f32> = input.iter().enumerate().flat_map(model).collect();
            let (mut last, shape) = (vec![0.0; B * VOCABULARY], [B, VOCABULARY]);
            let of_all = Tensor::new([B, input[0].len(), VOCABULARY], &all)?;
            let mut update = UpdateLogits::new(of_all, TensorMut::new(shape, &mut last)?);
            update.finished = Some(Tensor::new([B], &finished)?);
            (update.end_id, update.softmax) = (END, matches!(self, Choice::TopP(_)));
            run(host, update)?;

            let (numbers, mut ids) = ([0, 1, 2, 3].map(|row| random(row, cur_pos)), [0; B]);
            let rows = (Tensor::new(shape, &last)?, Tensor::new([B], &numbers)?, TensorMut::new([B], &mut ids)?);
            let prompt = (Tensor::new([B, 8], PROMPTS.as_flattened())?, Tensor::new([B, 8], &mask)?);
            let ends = (TensorMut::new([B], &mut lengths)?, TensorMut::new([B], &mut finished)?);
            match self {
                Choice::TopK { k, diversity_rate } => {
                    let mut call = TopKSampling::new(rows.0, rows.1, k as i64, rows.2);
                    (call.prompt_tokens, call.prompt_mask) = (Some(prompt.0), Some(prompt.1));
                    (call.sequence_length, call.finished) = (Some(ends.0), Some(ends.1));
                    (call.cur_pos, call.end_id, call.diversity_rate) = (cur_pos as i64, END, diversity_rate);
                    run(host, call)?;
                }
                Choice::TopP(p) => {
                    let mut call = TopPSampling::new(rows.0, rows.1, p, rows.2);
                    (call.prompt_tokens, call.prompt_mask) = (Some(prompt.0), Some(prompt.1));
                    (call.sequence_length, call.finished) = (Some(ends.0), Some(ends.1));
                    (call.cur_pos, call.end_id) = (cur_pos as i64, END);
                    run(host, call)?;
                }
            }
            word_ids.extend(ids);
            input = ids.map(|id| vec![id]).to_vec();
            if check_finished(&finished) {
                break;
            }
        }
        let mut output = vec![-1; B * POSITIONS];
        let removal = RemovePromptTokens::new(
            Tensor::new([word_ids.len() / B, B], &word_ids)?,
            Tensor::new([B], &lengths)?,
            Tensor::new([B], &LENGTHS)?,
            SHORTEST as i64,
            TensorMut::new([B, POSITIONS], &mut output)?,
        );
        run(host, removal)?;
        Ok((output, lengths))
    }
}

#[test]
fn a_loop_of_single_operations() -> Result<(), Error> {
    let choices = [
        Choice::TopK { k: 1, diversity_rate: 0.0 },
        Choice::TopK { k: 5, diversity_rate: 0.0 },
        Choice::TopK { k: 8, diversity_rate: 0.4 },
        Choice::TopP(0.0),
        Choice::TopP(0.8),
        Choice::TopP(1.0),
    ];
    let mut ended = [0, 0];
    for choice in choices {
        for host in hosts() {
            let (output, lengths) = choice.together(&host)?;
            for (row, line) in output.chunks_exact(POSITIONS).enumerate() {
                let expected = choice.alone(row);
                assert_eq!(lengths[row] as usize, expected.len(), "{choice:?} row {row}");
                assert_eq!(line[..expected.len()], expected, "{choice:?} row {row} {}", host.isa().name());
                assert!(line[expected.len()..].iter().all(|&token| token == -1));
                ended[usize::from(expected.ends_with(&[END]))] += 1;
            }
        }
    }
    assert!(ended[0] > 0 && ended[1] > 0, "some rows end and some do not: {ended:?}");
    Ok(())
}
