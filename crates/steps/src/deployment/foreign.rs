//! What somebody else did to a resource after this run deployed it: a rollback leaves that as it is.
//!
//! The rule is the same for all platforms. Before a rollback changes a resource it looks at what is there. That is what
//! was there before the run, or what the run put there, in any of its attempts and also where a call was cut off before
//! its answer came; that is undone. Anything else is somebody else's: a hand, another tool, another pipeline. It is not
//! touched, and the rollback fails and says which resource was left, what is there and what to do. The number of tasks or
//! instances is no sign of another hand: scaling changes it by itself.

use slipway_model::status::Failure;

use super::wrong;

/// A resource that is neither what this run put there nor what it found there.
pub(crate) struct Foreign {
    /// Kind, name and place, as the beginning of a sentence.
    pub(crate) resource: String,
    /// What is there, as a clause: `it runs web:7`.
    pub(crate) found: String,
    /// What this run put there, where that is known.
    pub(crate) put: Option<String>,
    /// What the rollback would bring back; `None` where it would delete the resource.
    pub(crate) before: Option<String>,
}

impl Foreign {
    /// The failure of the rollback that leaves it.
    pub(crate) fn left(self) -> Failure {
        let Self {
            resource,
            found,
            put,
            before,
        } = self;
        let ours = match (&put, &before) {
            (Some(put), Some(before)) => {
                format!("this run put {put} there in the place of {before}")
            }
            (Some(put), None) => format!("this run created it with {put}"),
            (None, Some(before)) => format!("this run found {before} there"),
            (None, None) => "this run did not do that".to_owned(),
        };
        let (advice, missing) = match &before {
            Some(before) => (
                format!("If {before} is to come back, deploy it again or put it back by hand."),
                format!("; {before} is not back"),
            ),
            None => (
                "Delete it by hand if nobody needs it.".to_owned(),
                String::new(),
            ),
        };
        Failure {
            left_behind: Some(format!("{resource}: {found}{missing}")),
            ..wrong(format!(
                "{resource} is left as it is: {found}, and {ours}. Somebody or something else changed it since: look \
                 at who did. {advice}"
            ))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_reads_what_was_left_what_is_there_and_what_to_do() {
        let foreign = |put: Option<&str>, before: Option<&str>| {
            let foreign = Foreign {
                resource: "Service web in eu-west-1".to_owned(),
                found: "it runs web:7".to_owned(),
                put: put.map(str::to_owned),
                before: before.map(str::to_owned),
            };
            let failure = foreign.left();
            format!(
                "{}\n{}",
                failure.message,
                failure.left_behind.unwrap_or_default()
            )
        };
        insta::assert_snapshot!(foreign(Some("web:2"), Some("web:1")), @"
        Service web in eu-west-1 is left as it is: it runs web:7, and this run put web:2 there in the place of web:1. Somebody or something else changed it since: look at who did. If web:1 is to come back, deploy it again or put it back by hand.
        Service web in eu-west-1: it runs web:7; web:1 is not back
        ");
        insta::assert_snapshot!(foreign(None, Some("web:1")), @"
        Service web in eu-west-1 is left as it is: it runs web:7, and this run found web:1 there. Somebody or something else changed it since: look at who did. If web:1 is to come back, deploy it again or put it back by hand.
        Service web in eu-west-1: it runs web:7; web:1 is not back
        ");
        insta::assert_snapshot!(foreign(Some("web:2"), None), @"
        Service web in eu-west-1 is left as it is: it runs web:7, and this run created it with web:2. Somebody or something else changed it since: look at who did. Delete it by hand if nobody needs it.
        Service web in eu-west-1: it runs web:7
        ");
    }
}
