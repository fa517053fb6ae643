//! `webhook` of Debian: what others use to run a command for a delivery.

use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::json;

use crate::Failure;
use crate::payload::SECRET;

/// Where its hook is.
pub(crate) const PATH: &str = "/hooks/push";

/// Keeps a delivery once: its id is a folder, which two cannot make, and the body is on disk before it is answered.
const KEEP: &str = "#!/bin/sh\nset -e\nmkdir \"KEPT/$1\" 2>/dev/null || exit 0\nprintf %s \"$2\" > \"KEPT/$1/body\"\nsync \"KEPT/$1/body\"\n";

/// A server under way; killed when dropped.
pub(crate) struct Other {
    child: Child,
    pub(crate) at: SocketAddr,
}

impl Other {
    /// Starts it; `None` where it is not installed. It keeps what comes before it answers, or does nothing.
    pub(crate) async fn start(dir: &Path, keeps: bool) -> Result<Option<Self>, Failure> {
        let dir = dir.join(if keeps { "keeping" } else { "plain" });
        let kept = dir.join("kept");
        std::fs::create_dir_all(&kept)?;
        let script = dir.join("keep.sh");
        std::fs::write(&script, KEEP.replace("KEPT", &kept.to_string_lossy()))?;
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755))?;
        let arguments = json!([
            {"source": "header", "name": "X-GitHub-Delivery"},
            {"source": "entire-payload"},
        ]);
        let hook = json!([{
            "id": "push",
            "execute-command": if keeps { script.to_string_lossy().into_owned() } else { "/bin/true".to_owned() },
            "pass-arguments-to-command": if keeps { arguments } else { json!([]) },
            "include-command-output-in-response": keeps,
            "trigger-rule-mismatch-http-response-code": 401,
            "trigger-rule": {"match": {
                "type": "payload-hmac-sha256", "secret": SECRET,
                "parameter": {"source": "header", "name": "X-Hub-Signature-256"},
            }},
        }]);
        let hooks = dir.join("hooks.json");
        std::fs::write(&hooks, hook.to_string())?;
        let at = std::net::TcpListener::bind(("127.0.0.1", 0))?.local_addr()?;
        let started = Command::new("webhook")
            .arg("-hooks")
            .arg(&hooks)
            .args(["-ip", "127.0.0.1", "-port", &at.port().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let child = match started {
            Ok(child) => child,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let other = Self { child, at };
        for _ in 0..500 {
            if tokio::net::TcpStream::connect(at).await.is_ok() {
                return Ok(Some(other));
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        Err("webhook does not listen".into())
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
