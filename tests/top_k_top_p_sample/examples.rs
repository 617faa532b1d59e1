//! TopKTopPSample on the worked examples.

use crate::common::sampling::{Answer, Case, Q};
use crate::common::{Order, hosts};
use half::{bf16, f16};
use serde_json::Value;
use tilekern::ops::PostSample;
use tilekern_kernels::element::Element;

fn examples() -> Vec<Value> {
    let text = include_str!("../data/sampling_examples.json");
    serde_json::from_str::<Vec<Value>>(text).unwrap()
}

/// The numbers of a matrix or a vector, row-major.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        Value::String(text) if text == "-inf" => vec![f64::NEG_INFINITY],
        number => vec![number.as_f64().unwrap()],
    }
}

fn floats(value: &Value) -> Vec<f32> {
    numbers(value).into_iter().map(|x| x as f32).collect()
}

fn integers(value: &Value) -> Vec<i64> {
    numbers(value).into_iter().map(|x| x as i64).collect()
}

fn case<T: Element + std::fmt::Debug>(example: &Value) -> Case<T> {
    let (inputs, attrs) = (&example["inputs"], &example["attrs"]);
    let narrow = |value: &Value| floats(value).into_iter().map(T::narrow).collect::<Vec<T>>();
    let v = inputs["logits"][0].as_array().unwrap().len();
    let mut case = Case::new(v, narrow(&inputs["logits"]));
    case.top_k = integers(&inputs["top_k"]).into_iter().map(|k| k as i32).collect();
    case.top_p = narrow(&inputs["top_p"]);
    case.min_ps = Some(&inputs["min_ps"]).filter(|m| !m.is_null()).map(narrow);
    case.q = Some(&inputs["q"]).filter(|q| !q.is_null()).map_or(Q::None, |q| Q::Exponential(floats(q)));
    case.eps = attrs["eps"].as_f64().unwrap_or(case.eps);
    case.ks_max = attrs["ks_max"].as_i64().unwrap_or(case.ks_max);
    case.input_is_logits = attrs["input_is_logits"].as_bool().unwrap_or(true);
    case
}

/// Compares what the example lists; probabilities within the 1e-6 that another `exp` may make.
fn compare(name: &str, outputs: &Value, answer: &Answer) {
    let mut compared = 0;
    for (key, found) in [("logits_select_idx", &answer.chosen), ("logits_idx", &answer.idx)] {
        if !outputs[key].is_null() {
            assert_eq!(found, &integers(&outputs[key]), "{name}: {key}");
            compared += 1;
        }
    }
    if !outputs["logits_top_kp_select"].is_null() {
        let expected: Vec<u32> = floats(&outputs["logits_top_kp_select"]).into_iter().map(f32::to_bits).collect();
        assert_eq!(answer.select, expected, "{name}: logits_top_kp_select");
        compared += 1;
    }
    if !outputs["logits_sort_masked"].is_null() {
        let expected = floats(&outputs["logits_sort_masked"]);
        assert_eq!(answer.sorted.len(), expected.len());
        for (&found, expected) in answer.sorted.iter().zip(expected) {
            assert!((f32::from_bits(found) - expected).abs() <= 1e-6 * expected, "{name}: {} {expected}", f32::from_bits(found));
        }
        compared += 1;
    }
    assert!(compared > 0, "{name}: nothing compared");
}

fn replay<T: Element + std::fmt::Debug>(example: &Value) {
    let name = example["name"].as_str().unwrap();
    let case = case::<T>(example);
    for host in hosts() {
        for order in [Order::Contiguous, Order::Pitched, Order::Transposed] {
            compare(name, &example["outputs"], &case.answer(&host, order));
        }
    }
}

#[test]
fn every_example_of_the_operator() {
    let mut replayed = 0;
    for example in examples().iter().filter(|e| e["op"] == "TopKTopPSampleV2") {
        match example["attrs"]["dtype"].as_str() {
            Some("float16") => replay::<f16>(example),
            Some("bfloat16") => replay::<bf16>(example),
            _ => replay::<f32>(example),
        }
        replayed += 1;
    }
    assert_eq!(replayed, 16);
}

/// Two calls with one generator, whose offset grows by 12.
#[test]
fn multinomial_with_a_generator() {
    let examples = examples();
    let example = examples.iter().find(|e| e["op"] == "npu_top_k_top_p_sample").unwrap();
    let mut case = case::<f32>(example);
    case.post_sample = PostSample::MultiNomial;
    for host in hosts() {
        for (key, offset) in [("idx_call1", 0), ("idx_call2", 12)] {
            case.generator = Some([example["attrs"]["seed"].as_i64().unwrap(), offset]);
            let answer = case.answer(&host, Order::Contiguous);
            assert_eq!(answer.chosen, integers(&example["outputs"][key]), "{key}");
            let select: Vec<u32> = floats(&example["outputs"]["select"]).into_iter().map(f32::to_bits).collect();
            assert_eq!(answer.select, select);
        }
    }
}
