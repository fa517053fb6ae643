//! Zips of the Lambda functions: `bootstrap` binaries for the runtime `provided.al2023`.
//!
//! `cargo-zigbuild` links against the glibc of Amazon Linux 2023 (2.34), whatever this machine has.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use crate::{cargo, root, run, target, tools};

/// Processor of the functions.
#[derive(Clone, Copy, ValueEnum)]
pub enum Arch {
    /// `arm64`, the cheaper one; needs `rustup target add aarch64-unknown-linux-gnu`.
    Arm64,
    /// `x86_64`.
    #[value(name = "x86_64")]
    X86_64,
}

impl Arch {
    fn triple(self) -> &'static str {
        match self {
            Self::Arm64 => "aarch64-unknown-linux-gnu",
            Self::X86_64 => "x86_64-unknown-linux-gnu",
        }
    }
}

/// Builds every package of `functions/` and writes `<target>/lambda/<name>.zip`.
///
/// # Errors
/// When a build fails or a zip cannot be written.
pub fn package(arch: Arch) -> Result<()> {
    let zig = tools::python_tool("cargo-zigbuild", "cargo-zigbuild==0.24.0")?;
    let bin = zig.parent().context("the tool has no folder")?;
    let path = std::env::var("PATH").unwrap_or_default();
    let names = functions()?;
    let mut build = cargo();
    build
        .arg("zigbuild")
        .args(["--release", "--target", &format!("{}.2.34", arch.triple())]);
    for name in &names {
        build.args(["--package", &format!("slipway-fn-{name}")]);
    }
    run(build.env("PATH", format!("{}:{path}", bin.display())))?;
    let out = target().join("lambda");
    std::fs::create_dir_all(&out).with_context(|| format!("creating {}", out.display()))?;
    for name in &names {
        let binary = target()
            .join(arch.triple())
            .join("release")
            .join(format!("slipway-fn-{name}"));
        let zip = out.join(format!("{name}.zip"));
        compress(&binary, &zip)?;
        println!(
            "{} {} KiB",
            zip.display(),
            std::fs::metadata(&zip)?.len() / 1024
        );
    }
    Ok(())
}

fn functions() -> Result<Vec<String>> {
    let folder = root().join("functions");
    let mut names = Vec::new();
    for entry in
        std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))?
    {
        let entry = entry?;
        if entry.path().join("Cargo.toml").is_file() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    if names.is_empty() {
        bail!("{} has no packages", folder.display());
    }
    Ok(names)
}

fn compress(binary: &Path, zip: &Path) -> Result<()> {
    let mut bytes = Vec::new();
    File::open(binary)
        .and_then(|mut file| file.read_to_end(&mut bytes))
        .with_context(|| format!("reading {}", binary.display()))?;
    let file = File::create(zip).with_context(|| format!("writing {}", zip.display()))?;
    let mut writer = ZipWriter::new(file);
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .unix_permissions(0o755);
    writer.start_file("bootstrap", options)?;
    writer.write_all(&bytes)?;
    writer.finish()?;
    Ok(())
}
