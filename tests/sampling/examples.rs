//! The worked examples of the operators.

use serde_json::Value;

/// Those of one operator.
pub fn of(op: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(include_str!("../data/sampling_examples.json")).unwrap();
    all.into_iter().filter(|example| example["op"] == op).collect()
}

/// The numbers of a matrix or a vector, row-major.
fn numbers(value: &Value) -> Vec<f64> {
    match value {
        Value::Array(items) => items.iter().flat_map(numbers).collect(),
        Value::String(text) if text == "-inf" => vec![f64::NEG_INFINITY],
        number => vec![number.as_f64().unwrap()],
    }
}

pub fn floats(value: &Value) -> Vec<f32> {
    numbers(value).into_iter().map(|x| x as f32).collect()
}

pub fn integers(value: &Value) -> Vec<i64> {
    numbers(value).into_iter().map(|x| x as i64).collect()
}
