//! F16, F21 and Y20: data directories that are damaged, read-only, taken, restored from a backup, or hold a record that
//! nobody can read. `slipway local` says what is wrong, or goes on from the last good record; it never panics or hangs.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use slipway_tests::{LocalProcess, binary};

use crate::{accept, code, errors, pipeline, run, script, shop, wait};

/// No start takes longer, also in a debug build on a busy machine.
const BOUND: Duration = Duration::from_secs(60);

/// Copies a folder with all that is in it.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let (path, target) = (entry.path(), to.join(entry.file_name()));
        match path.is_dir() {
            true => copy(&path, &target),
            false => drop(std::fs::copy(&path, &target).expect("copied")),
        }
    }
}

/// How a start of `slipway local` went: its first line, or what it said before it ended.
enum Start {
    Listens(Child, String),
    Refused(String),
}

fn start(mut command: Command, data: &Path) -> Start {
    let said = data.with_extension("stdout");
    let complaints = data.with_extension("stderr");
    let file = |path: &Path| std::fs::File::create(path).expect("a file");
    let mut child = command
        .args(["local", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(file(&said))
        .stderr(file(&complaints))
        .spawn()
        .expect("it starts");
    let began = Instant::now();
    loop {
        let text = |path: &Path| std::fs::read_to_string(path).unwrap_or_default();
        if let Some(status) = child.try_wait().expect("a child") {
            let why = text(&complaints);
            assert!(!why.contains("panicked"), "{why}");
            assert_eq!(status.code(), Some(1), "{why}");
            return Start::Refused(why);
        }
        if let Some(line) = text(&said)
            .lines()
            .next()
            .filter(|_| text(&said).ends_with('\n'))
        {
            let url = line.strip_prefix("listening on ").expect("its address");
            return Start::Listens(child, url.to_owned());
        }
        assert!(began.elapsed() < BOUND, "it neither starts nor ends");
        std::thread::yield_now();
    }
}

/// The pipelines that a directory holds, or why it is refused. Everything it shows was written whole.
fn pipelines(data: &Path) -> Result<usize, String> {
    let (mut child, url) = match start(Command::new(binary()), data) {
        Start::Listens(child, url) => (child, url),
        Start::Refused(why) => return Err(why),
    };
    let list = [
        "--url",
        &url,
        "list",
        "pipeline",
        "-o",
        "json",
        "--data-dir",
    ];
    let listed = Command::new(binary())
        .args(list)
        .arg(data)
        .env_remove("SLIPWAY_TOKEN")
        .output()
        .expect("slipway runs");
    child.kill().expect("it can be killed");
    child.wait().expect("it is gone");
    let why = errors(&listed);
    assert!(!why.contains("panicked"), "{why}");
    if code(&listed) != 0 {
        return Err(why);
    }
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    Ok(listed.as_array().expect("a list").len())
}

/// A directory as SIGKILL leaves it, with this many pipelines, their files not yet written back.
fn killed(dir: &Path, count: usize) -> std::path::PathBuf {
    let data = dir.join("data");
    let local = LocalProcess::start(&data);
    for n in 0..count {
        let yaml = pipeline(&format!("p{n}"), "", &wait("w", "1s"));
        accept(&local, dir, "p.yaml", &yaml);
    }
    let output = run(&local, "p0", &[]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
    local.kill();
    data
}

const COUNT: usize = 12;

#[test]
fn f16_a_torn_or_damaged_file_is_read_up_to_its_last_good_record_or_refused_by_name() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = killed(dir.path(), COUNT);
    assert_eq!(
        pipelines(&{
            let whole = dir.path().join("whole");
            copy(&data, &whole);
            whole
        }),
        Ok(COUNT)
    );
    type Damage = fn(&mut Vec<u8>);
    let torn: Damage = |bytes| bytes.truncate(bytes.len() - 100);
    let half: Damage = |bytes| bytes.truncate(bytes.len() / 2);
    let flip: Damage = |bytes| {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 0x10;
    };
    let zeros: Damage = |bytes| bytes.iter_mut().take(64).for_each(|byte| *byte = 0);
    let logs = [
        ("torn", torn),
        ("half", half),
        ("flip", flip),
        ("zeros", zeros),
    ];
    let (mut read, mut refused) = (0, 0);
    for file in [
        "store/dynamodb.sqlite-wal",
        "executions.db-wal",
        "store/dynamodb.sqlite",
        "executions.db",
        "sandbox.redb",
    ] {
        assert!(data.join(file).is_file(), "{file} is one of the files");
        let is_log = file.ends_with("-wal");
        for (name, damage) in logs {
            let hurt = dir
                .path()
                .join(format!("{name}-{}", file.replace('/', "-")));
            copy(&data, &hurt);
            let path = hurt.join(file);
            let mut bytes = std::fs::read(&path).expect("the file");
            if bytes.len() < 200 {
                continue;
            }
            damage(&mut bytes);
            std::fs::write(&path, &bytes).expect("damaged");
            match pipelines(&hurt) {
                // A log ends where its checksums end. What a database shows is what was written.
                Ok(count) => {
                    read += 1;
                    assert!(count <= COUNT, "{file}, {name}: {count}");
                }
                Err(why) => {
                    refused += 1;
                    assert!(!is_log, "{file}, {name}: {why}");
                    let stem = file.rsplit('/').next().expect("a name");
                    let named =
                        why.contains(stem) || why.contains("store") || why.contains("damaged");
                    assert!(named, "{file}, {name}: {why}");
                }
            }
        }
    }
    assert!(
        read > 0 && refused > 0,
        "{read} were read, {refused} refused"
    );
}

#[test]
fn f16_a_missing_folder_is_made_and_what_stands_beside_it_is_kept() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = killed(dir.path(), 2);
    for gone in ["store/s3", "store/secrets", "delegate"] {
        let _ = std::fs::remove_dir_all(data.join(gone));
    }
    assert_eq!(pipelines(&data), Ok(2));
    // A token that no table knows opens nothing: there is a new one.
    std::fs::remove_dir_all(data.join("store")).expect("removed");
    assert_eq!(pipelines(&data), Ok(0));
    assert_eq!(pipelines(&dir.path().join("nowhere")), Ok(0));
}

#[test]
fn f16_a_second_process_is_refused_and_the_first_goes_on() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let local = LocalProcess::start(&data);
    accept(
        &local,
        dir.path(),
        "p.yaml",
        &pipeline("kept", "", &wait("w", "1s")),
    );
    let Start::Refused(why) = start(Command::new(binary()), &data) else {
        panic!("a second process got the directory");
    };
    assert!(
        why.contains("in use") && why.contains(&local.pid().to_string()),
        "{why}"
    );
    let output = run(&local, "kept", &[]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
}

/// As somebody whom permissions concern, with a binary that everybody can reach.
fn as_nobody(dir: &Path) -> Command {
    let root = std::fs::metadata("/proc/self").expect("ourselves");
    if std::os::unix::fs::MetadataExt::uid(&root) != 0 {
        return Command::new(binary());
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", "65534", "--regid", "65534", "--clear-groups"]);
    let reached = dir.join("slipway");
    std::fs::copy(binary(), &reached).expect("copied");
    command.arg(reached);
    command
}

#[test]
fn f16_a_directory_that_may_not_be_written_is_refused_by_name() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().expect("a folder");
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(dir.path(), open.clone()).expect("open to look at");
    let data = dir.path().join("data");
    std::fs::create_dir(&data).expect("a folder");
    let closed = std::fs::Permissions::from_mode(0o555);
    std::fs::set_permissions(&data, closed).expect("closed to writers");
    let Start::Refused(why) = start(as_nobody(dir.path()), &data) else {
        panic!("it writes where it may not");
    };
    assert!(
        why.contains(data.to_str().expect("text")) && why.contains("denied"),
        "{why}"
    );
    std::fs::set_permissions(&data, open).expect("as it was");
    assert_eq!(
        std::fs::read_dir(&data).expect("a folder").count(),
        0,
        "nothing was made"
    );
}

/// Overwrites one attribute of an item of the running service's tables.
async fn overwrite(local: &LocalProcess, table: &str, key: (&str, &str), attribute: &str) {
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version_latest()
        .endpoint_url(local.url())
        .region(aws_sdk_dynamodb::config::Region::new("us-east-1"))
        .credentials_provider(aws_credential_types::Credentials::for_tests())
        .build();
    let text = |text: &str| AttributeValue::S(text.to_owned());
    let dynamodb = aws_sdk_dynamodb::Client::from_conf(config);
    let update = dynamodb.update_item().table_name(table);
    let update = update.key("pk", text(key.0)).key("sk", text(key.1));
    let update = update.condition_expression("attribute_exists(pk)");
    let update = update.update_expression("SET #name = :value");
    let update = update.expression_attribute_names("#name", attribute);
    let update = update.expression_attribute_values(":value", text("{\"torn\": "));
    update.send().await.expect("overwritten");
}

#[tokio::test]
async fn y20_one_bad_record_stops_neither_the_boot_nor_a_list() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let local = LocalProcess::start(&data);
    for id in ["bad", "good"] {
        accept(
            &local,
            dir.path(),
            "p.yaml",
            &pipeline(id, "", &wait("w", "1s")),
        );
        let output = run(&local, id, &[]);
        assert_eq!(code(&output), 0, "{}", errors(&output));
    }
    let runs = local.json(&["list", "run", "-o", "json"]);
    let runs = runs.as_array().expect("a list");
    let of_bad = runs.iter().find(|run| run["pipelineIdentifier"] == "bad");
    let of_bad = of_bad.expect("a run")["planExecutionId"]
        .as_str()
        .expect("an id")
        .to_owned();
    let entity = ("entity#local/default/default#pipeline#", "bad");
    overwrite(&local, "slipway-entities", entity, "body").await;
    overwrite(
        &local,
        "slipway-entities",
        ("entity#local/default/#project#", "default"),
        "body",
    )
    .await;
    let key = format!("run#{of_bad}");
    overwrite(&local, "slipway-runs", (&key, "run"), "status").await;
    local.kill();

    let local = LocalProcess::start(&data);
    let names = |listed: &serde_json::Value, field: &str| -> Vec<String> {
        let all = listed.as_array().expect("a list").iter();
        all.map(|one| one[field].as_str().unwrap_or_default().to_owned())
            .collect()
    };
    let listed = local.json(&["list", "pipeline", "-o", "json"]);
    assert_eq!(names(&listed, "identifier"), ["good"]);
    let listed = local.json(&["list", "run", "-o", "json"]);
    assert_eq!(names(&listed, "pipelineIdentifier"), ["good"]);
    for (kind, id) in [("pipeline", "bad"), ("run", &of_bad)] {
        let alone = local.slipway(&["get", kind, id, "-o", "json"]);
        let why = errors(&alone);
        assert_ne!(code(&alone), 0, "{kind}");
        assert!(
            why.contains("cannot be read") && !why.contains("panicked"),
            "{why}"
        );
    }
    let output = run(&local, "good", &[]);
    assert_eq!(code(&output), 0, "{}", errors(&output));
}

#[tokio::test]
async fn f21_a_restored_backup_repeats_no_finished_run_and_ends_where_the_account_is() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let local = shop(dir.path(), true).await;
    let first = run(&local, "deploy_shop", &["tag=1.0"]);
    assert_eq!(code(&first), 0, "{}", errors(&first));
    // The backup is from the middle of the second deployment; the account goes on.
    let started = local.json(&["run", "deploy_shop", "--input", "tag=2.0", "-o", "json"]);
    let second = started["run"].as_str().expect("a run id").to_owned();
    local.kill();
    let backup = dir.path().join("backup");
    copy(&data, &backup);
    let local = LocalProcess::start(&data);
    let ended = local.slipway(&["logs", &second, "--follow"]);
    assert_eq!(code(&ended), 0, "{}", errors(&ended));
    let before = registered(&local).await;
    assert_eq!(before.len(), 2);
    local.kill();

    restore(&backup, &data);
    let local = LocalProcess::start(&data);
    let ended = local.slipway(&["logs", &second, "--follow"]);
    assert_eq!(code(&ended), 0, "{}", errors(&ended));
    let seen = local.json(&["get", "run", &second, "-o", "json"]);
    assert_eq!(seen["status"], "Success", "{seen}");
    // What had ended before the backup is not done again. What the backup knows nothing of is: to the same end.
    let now = registered(&local).await;
    assert_eq!(now[..2], before);
    assert!(now.len() <= 3, "{now:?}");
    let service = local.ecs().describe_services().cluster("shop");
    let service = service.services("shop").send().await.expect("a service");
    let service = &service.services()[0];
    assert_eq!(service.task_definition(), now.last().map(String::as_str));
    let (desired, running) = (service.desired_count(), service.running_count());
    assert_eq!(desired, running);
    let mut images = Vec::new();
    for arn in &now {
        let described = local.ecs().describe_task_definition().task_definition(arn);
        let described = described.send().await.expect("a task definition");
        let described = described.task_definition().expect("its description");
        let image = described.container_definitions()[0].image();
        images.push(image.expect("an image").to_owned());
    }
    assert!(images[1].ends_with(":2.0"), "{images:?}");
    assert_eq!(images.last(), images.get(1));
}

/// Brings all back but the account, which goes on as it is.
fn restore(backup: &Path, data: &Path) {
    for part in [
        "store",
        "executions.db",
        "executions.db-wal",
        "executions.db-shm",
    ] {
        let (kept, lost) = (backup.join(part), data.join(part));
        if lost.is_dir() {
            std::fs::remove_dir_all(&lost).expect("removed");
        } else if lost.exists() {
            std::fs::remove_file(&lost).expect("removed");
        }
        if kept.is_dir() {
            copy(&kept, &lost);
        } else if kept.exists() {
            std::fs::copy(&kept, &lost).expect("restored");
        }
    }
}

#[tokio::test]
async fn f21_what_a_restored_backup_does_not_know_is_told_of_the_next_run() {
    let dir = tempfile::tempdir().expect("a folder");
    let data = dir.path().join("data");
    let local = shop(dir.path(), true).await;
    let first = run(&local, "deploy_shop", &["tag=1.0"]);
    assert_eq!(code(&first), 0, "{}", errors(&first));
    local.kill();
    let backup = dir.path().join("backup");
    copy(&data, &backup);
    // A day of deployments that the backup knows nothing of.
    let local = LocalProcess::start(&data);
    let second = run(&local, "deploy_shop", &["tag=2.0"]);
    assert_eq!(code(&second), 0, "{}", errors(&second));
    local.kill();
    restore(&backup, &data);

    let local = LocalProcess::start(&data);
    let started = local.json(&["run", "deploy_shop", "--input", "tag=3.0", "-o", "json"]);
    let third = started["run"].as_str().expect("a run id").to_owned();
    let ended = local.slipway(&["logs", &third, "--follow"]);
    assert_eq!(code(&ended), 0, "{}", errors(&ended));
    let seen = local.json(&["get", "run", &third, "-o", "json"]);
    let warnings = seen["warnings"].as_array().expect("a list");
    assert_eq!(warnings.len(), 1, "{seen}");
    let told = warnings[0]["message"].as_str().expect("a text");
    assert!(
        told.contains("runs shop:2, and Slipway's records say shop:1 (run "),
        "{told}"
    );
    assert_eq!(seen["status"], "Success", "{seen}");
    // The records are those of the account again.
    let started = local.json(&["run", "deploy_shop", "--input", "tag=4.0", "-o", "json"]);
    let fourth = started["run"].as_str().expect("a run id").to_owned();
    let ended = local.slipway(&["logs", &fourth, "--follow"]);
    assert_eq!(code(&ended), 0, "{}", errors(&ended));
    let seen = local.json(&["get", "run", &fourth, "-o", "json"]);
    assert_eq!(seen["warnings"], serde_json::json!([]), "{seen}");
}

async fn registered(local: &LocalProcess) -> Vec<String> {
    let list = local.ecs().list_task_definitions().family_prefix("shop");
    let list = list.send().await.expect("a list");
    list.task_definition_arns().to_vec()
}

/// `slipway local` in this process, with a clock that was never set.
#[tokio::test]
async fn f16_a_machine_whose_clock_stands_in_1970_serves() {
    use slipway_cli::args::{LocalArgs, PaceArg, Target};
    let dir = tempfile::tempdir().expect("a folder");
    let clock = slipway_clock::Clock::paused("1970-01-01T00:00:00Z".parse().expect("a time"));
    let local = LocalArgs {
        listen: "127.0.0.1:0".parse().expect("an address"),
        target: Target::Sandbox,
        pace: PaceArg::Brisk,
        delegate_tasks: 1,
        delegate_tags: Vec::new(),
    };
    let options = slipway_cli::local::Options {
        data_dir: dir.path().join("data"),
        clock,
        local,
    };
    let running = slipway_cli::local::start(options).await.expect("it starts");
    let yaml = dir.path().join("p.yaml");
    let text = pipeline("old", "", &script("say", "echo hello"));
    std::fs::write(&yaml, text).expect("a file");
    let (url, data) = (running.url().to_owned(), dir.path().join("data"));
    let told = tokio::task::spawn_blocking(move || {
        let slipway = |arguments: &[&str]| {
            let mut command = Command::new(binary());
            command.args(["--url", &url, "--data-dir"]).arg(&data);
            command.args(arguments).env_remove("SLIPWAY_TOKEN");
            command.output().expect("slipway runs")
        };
        let applied = slipway(&["apply", "-f", yaml.to_str().expect("text")]);
        assert_eq!(code(&applied), 0, "{}", errors(&applied));
        slipway(&["run", "old", "--follow", "-o", "json"])
    });
    let told = told.await.expect("no panic");
    assert_eq!(code(&told), 0, "{}", errors(&told));
    running.stop().await.expect("it stops");
}
