//! A harness for one forward RNN layer with Tanh, all float32: rustc --edition 2021 -O harness.rs
use std::fs;

/// The text between a key and the next `end`; "" if there is no such key.
fn after<'a>(text: &'a str, key: &str, end: char) -> &'a str {
    text.split_once(key).map_or("", |(_, rest)| rest.split(end).next().unwrap())
}

/// The shape of an input and its elements, of four bytes each; none if there is no such input.
fn load<T>(line: &str, name: &str, element: fn([u8; 4]) -> T) -> (Vec<usize>, Vec<T>) {
    let row = after(line, &format!("\"{name}\":{{"), '}');
    if row.is_empty() {
        return (vec![], vec![]);
    }
    let shape = after(row, "\"shape\":[", ']').split(',').map(|size| size.parse().unwrap());
    let bytes = fs::read(after(row, "\"file\":\"", '"')).unwrap();
    let elements = bytes.chunks_exact(4).map(|four| element(four.try_into().unwrap()));
    (shape.collect(), elements.collect())
}

/// The attributes that may be given: what shapes and requested outputs say, and defaults.
const PLAIN: [&str; 5] = [
    "\"hidden_size\":",
    "\"output_sequence\":",
    "\"direction\":\"forward\"",
    "\"layout\":0",
    "\"activations\":[\"Tanh\"]",
];

fn refusal(line: &str) -> Option<String> {
    let operator = after(line, "\"operator\":\"", '"');
    let (dtype, mut rest) =
        (after(line, "\"dtype\":\"", '"'), after(line, "\"attributes\":{", '}'));
    if !operator.starts_with("RNN-") {
        return Some(format!("no {operator}"));
    } else if dtype != "float32" {
        return Some(format!("no {dtype}"));
    } else if line.contains("\"quantise\":") {
        return Some("no integers".to_string());
    }
    while let Some(more) = PLAIN.iter().find_map(|name| rest.strip_prefix(name)) {
        rest = more.trim_start_matches(|c: char| c.is_ascii_digit() || c == ',');
    }
    (!rest.is_empty()).then(|| "only defaults".to_string())
}

fn run(line: &str) -> String {
    let (x_shape, x) = load(line, "X", f32::from_le_bytes);
    let (r_shape, r) = load(line, "R", f32::from_le_bytes);
    let (_, w) = load(line, "W", f32::from_le_bytes);
    let (_, b) = load(line, "B", f32::from_le_bytes);
    let (_, mut h) = load(line, "initial_h", f32::from_le_bytes);
    let (_, lengths) = load(line, "sequence_lens", i32::from_le_bytes);
    let (steps, batch, inputs, hidden) = (x_shape[0], x_shape[1], x_shape[2], r_shape[2]);
    let mut y = vec![0.0; steps * batch * hidden];
    h.resize(batch * hidden, 0.0);
    for row in 0..steps * batch {
        let (t, n) = (row / batch, row % batch);
        if lengths.get(n).is_some_and(|&length| t as i32 >= length) {
            continue; // Y stays 0, and the state as it is
        }
        for u in 0..hidden {
            let mut sum = if b.is_empty() { 0.0 } else { b[u] + b[hidden + u] };
            sum += (0..inputs).map(|i| w[u * inputs + i] * x[row * inputs + i]).sum::<f32>();
            sum += (0..hidden).map(|j| r[u * hidden + j] * h[n * hidden + j]).sum::<f32>();
            y[row * hidden + u] = sum.tanh();
        }
        h[n * hidden..][..hidden].copy_from_slice(&y[row * hidden..][..hidden]);
    }
    let asked = after(line.rsplit_once("\"outputs\":").unwrap().1, "[", ']');
    let made = [
        ("Y", y, format!("{steps},1,{batch},{hidden}")),
        ("Y_h", h, format!("1,{batch},{hidden}")),
    ];
    let answers = made.iter().filter(|(name, ..)| asked.contains(&format!("\"{name}\"")));
    let saved = answers.map(|(name, data, shape)| {
        let bytes: Vec<u8> = data.iter().flat_map(|number: &f32| number.to_le_bytes()).collect();
        fs::write(format!("{}/{name}.bin", after(line, "\"dir\":\"", '"')), bytes).unwrap();
        format!(r#""{name}":{{"file":"{name}.bin","dtype":"float32","shape":[{shape}]}}"#)
    });
    saved.collect::<Vec<_>>().join(",")
}

fn main() {
    for line in std::io::stdin().lines().map(Result::unwrap) {
        let (command, seq) = (after(&line, "\"cmd\":\"", '"'), after(&line, "\"seq\":", ','));
        if command == "stop" {
            break;
        } else if command == "start" {
            let about = r#"{"name":"my-kernel","version":"1.0","language":"Rust"}"#;
            println!(r#"{{"version":1,"implementation":{about}}}"#);
        } else if let Some(reason) = refusal(&line) {
            println!(r#"{{"seq":{seq},"skipped":true,"message":"{reason}"}}"#);
        } else {
            println!(r#"{{"seq":{seq},"outputs":{{{}}}}}"#, run(&line));
        }
    }
}
