//! The functions that Step Functions adds to JSONata, and the ones that it replaces.
//!
//! Developer Guide, "Transforming data with JSONata", "Functions provided by Step Functions".

use jiff::Timestamp;
use jsonata_core::evaluator::{Evaluator, EvaluatorError};
use jsonata_core::value::JValue;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::Value;

use crate::hash::hexadecimal;

/// Most items that `$range` may give (Developer Guide: "up to 1,000 items" for the intrinsic).
const LONGEST_RANGE: f64 = 1_000.0;

type Outcome = Result<JValue, EvaluatorError>;

/// Registers the functions that `source` mentions: most expressions use none.
pub(super) fn register(evaluator: &mut Evaluator, source: &str, now: Timestamp) {
    let mentions = |name: &str| source.contains(name);
    // A refusal to register would mean that jsonata-core took the name for itself, with its own meaning;
    // the tests of this module would see it.
    if mentions("$partition") {
        let _ = evaluator.register_fn("partition", partition);
    }
    if mentions("$range") {
        let _ = evaluator.register_fn("range", range);
    }
    if mentions("$hash") {
        let _ = evaluator.register_fn("hash", hash);
    }
    if mentions("$uuid") {
        let _ = evaluator.register_fn("uuid", |_: &[JValue]| {
            Ok(JValue::from(uuid::Uuid::new_v4().to_string()))
        });
    }
    if mentions("$parse") {
        let _ = evaluator.register_fn("parse", parse);
    }
    if mentions("$random") {
        let _ = evaluator.register_fn_override("random", random);
    }
    if mentions("$eval") {
        let _ = evaluator.register_fn_override("eval", |_: &[JValue]| {
            Err(failed(
                "$eval is not supported by Step Functions. Use $parse instead.",
            ))
        });
    }
    if mentions("$millis") {
        let _ = evaluator.register_fn_override("millis", move |_: &[JValue]| {
            Ok(JValue::from(now.as_millisecond()))
        });
    }
    // With a picture or a zone the evaluator's own `$now` formats; its clock is then the machine's.
    if mentions("$now()") {
        let _ = evaluator
            .register_fn_override("now", move |_: &[JValue]| Ok(JValue::from(timestamp(now))));
    }
}

/// A time as the context object and `$now()` write it: UTC with milliseconds.
pub(crate) fn timestamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

fn failed(message: impl Into<String>) -> EvaluatorError {
    EvaluatorError::EvaluationError(message.into())
}

fn partition(args: &[JValue]) -> Outcome {
    let (Some(items), Some(size)) = (
        args.first().and_then(JValue::as_array),
        args.get(1).and_then(JValue::as_f64),
    ) else {
        return Err(failed("$partition takes an array and a chunk size"));
    };
    if size < 1.0 || size.fract() != 0.0 {
        return Err(failed(
            "The chunk size of $partition must be a positive whole number",
        ));
    }
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive; a size beyond any array saturates"
    )]
    let chunks = items.chunks(size as usize);
    Ok(JValue::array(
        chunks.map(|chunk| JValue::array(chunk.to_vec())).collect(),
    ))
}

fn range(args: &[JValue]) -> Outcome {
    let number = |i: usize| args.get(i).and_then(JValue::as_f64);
    let (Some(first), Some(last), Some(step)) = (number(0), number(1), number(2)) else {
        return Err(failed("$range takes three numbers: first, last and step"));
    };
    if step == 0.0 {
        return Err(failed("The step of $range must not be 0"));
    }
    let count = ((last - first) / step).floor() + 1.0;
    if count > LONGEST_RANGE {
        return Err(failed("$range would give more than 1000 items"));
    }
    let mut items = Vec::new();
    let mut index = 0.0;
    while index < count {
        items.push(JValue::from(first + index * step));
        index += 1.0;
    }
    // A sequence, so that a range of one number is that number, as AWS gives it.
    Ok(JValue::sequence(items))
}

fn hash(args: &[JValue]) -> Outcome {
    let (Some(data), Some(algorithm)) = (
        args.first().and_then(JValue::as_str),
        args.get(1).and_then(JValue::as_str),
    ) else {
        return Err(failed("$hash takes a text and the name of an algorithm"));
    };
    let digest = hexadecimal(algorithm, data).ok_or_else(|| {
        failed(format!(
            "$hash does not know '{algorithm}': use MD5, SHA-1, SHA-256, SHA-384 or SHA-512"
        ))
    })?;
    Ok(JValue::from(digest))
}

fn parse(args: &[JValue]) -> Outcome {
    let Some(text) = args.first().and_then(JValue::as_str) else {
        return Err(failed("$parse takes a text"));
    };
    let value: Value = serde_json::from_str(text)
        .map_err(|error| failed(format!("$parse cannot read the text as JSON: {error}")))?;
    Ok(JValue::from(value))
}

fn random(args: &[JValue]) -> Outcome {
    let number: f64 = match args.first() {
        None => rand::rng().random(),
        Some(seed) => {
            let Some(seed) = seed.as_f64() else {
                return Err(failed("The seed of $random must be a number"));
            };
            rand::rngs::StdRng::seed_from_u64(seed.to_bits()).random()
        }
    };
    Ok(JValue::from(number))
}
