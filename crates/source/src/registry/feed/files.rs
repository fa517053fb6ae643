//! Files of a repository of Artifactory that has no format of its own.

use serde_json::{Value, json};
use slipway_steps::secrets::Secrets;

use super::server::{Server, json as read};
use super::{Answer, Poll, Trouble, build, from_floor};

/// Most files that are listed, the newest.
const MOST: usize = 10_000;

pub(super) async fn ask(poll: &Poll<'_>, secrets: &mut Secrets<'_>) -> Result<Answer, Trouble> {
    let repository = poll.must("repository")?;
    let folder = poll.text("artifactDirectory").unwrap_or_default();
    let folder = folder.trim_matches('/');
    let check = "`repository` and `artifactDirectory` of the trigger, and the connector's address";
    let server = Server::of(poll, "artifactoryServerUrl", check, secrets).await?;
    let url = server.url(&["api", "search", "aql"])?;
    let reply = server.post(&url, query(repository, folder)).await?;
    let answer = read(&server, &reply)?;
    let Some(results) = answer["results"].as_array() else {
        return Err(format!(
            "{}: its answer has no `results`: check the connector's address",
            server.name()
        )
        .into());
    };
    let all = results.iter().filter_map(|file| {
        let text = |name: &str| file[name].as_str();
        let (path, name) = (text("path")?, text("name")?);
        let whole = match path {
            "." | "" => name.to_owned(),
            path => format!("{path}/{name}"),
        };
        let version = below(&whole, folder)?;
        let made: Option<jiff::Timestamp> = text("created").and_then(|at| at.parse().ok());
        let at = made.map_or(0, jiff::Timestamp::as_millisecond);
        let mut segments = vec![repository];
        segments.extend(whole.split('/'));
        let url = server.url(&segments).ok()?;
        let told = [
            ("fileName", Some(name.to_owned())),
            ("artifactPath", Some(whole.clone())),
            ("url", Some(url.to_string())),
        ];
        Some((at, build(version, told)))
    });
    let listed = from_floor(all.collect(), results.len() >= MOST, poll.known.floor);
    Ok(Answer::All(listed))
}

/// A file's path below the folder that is watched.
fn below<'p>(path: &'p str, folder: &str) -> Option<&'p str> {
    match folder {
        "" | "." => Some(path),
        folder => path.strip_prefix(folder)?.strip_prefix('/'),
    }
}

/// The newest files of a folder and those below it. What people wrote is put in as JSON.
fn query(repository: &str, folder: &str) -> String {
    let mut wanted = json!({"repo": repository, "type": "file"});
    if !matches!(folder, "" | ".") {
        // A star is the language's own; it cannot be told apart from one of a name, and what it finds too much is left out.
        let folders = [
            json!({"path": folder}),
            json!({"path": {"$match": format!("{folder}/*")}}),
        ];
        wanted["$or"] = Value::from(folders.to_vec());
    }
    format!(
        "items.find({wanted}).include(\"repo\",\"path\",\"name\",\"created\").sort({{\"$desc\":[\"created\"]}}).limit({MOST})"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_does_not_leave_its_quotes() {
        let found = query("r\"}).include(\"", "a\"b");
        assert_eq!(found.matches(").include(\"repo\"").count(), 1, "{found}");
        assert!(found.contains(r#""repo":"r\"}).include(\"""#), "{found}");
        assert_eq!(below("a/b/c.zip", "a"), Some("b/c.zip"));
        assert_eq!(below("ab/c.zip", "a"), None);
        assert_eq!(below("c.zip", ""), Some("c.zip"));
    }
}
