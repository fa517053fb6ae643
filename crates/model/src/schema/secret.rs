//! `secret`. Harness has no schema for secrets: the fields are those of its API.

use super::{
    ANY, BOOL, FILLED, IDENTIFIER, MARKS, NAME, Object, Shape, TAGS, TEXT, TYPE, object, typed,
};
use crate::shape::Field;

object!(SECRET, "a secret", [
    must "identifier": IDENTIFIER,
    must "name": NAME,
    may "description": TEXT,
    may "tags": TAGS,
    may "orgIdentifier": TEXT,
    may "projectIdentifier": TEXT,
    must "type": TYPE,
], also: &[&MARKS], typed: typed(&[
    ("SecretText", Shape::Object(&SECRET_TEXT)),
    ("SecretFile", Shape::Object(&SECRET_FILE)),
    ("SSHKey", Shape::Object(&SSH_KEY)),
    ("WinRmCredentials", Shape::Object(&WINRM)),
], &[]));
object!(SECRET_TEXT, "the spec of a secret text", [
    may "secretManagerIdentifier": FILLED,
    may "valueType": Shape::OneOf(&["Inline", "Reference", "CustomSecretManagerValues"]),
    may "value": TEXT,
    may "additionalMetadata": ANY,
], also: &[&MARKS]);
object!(SECRET_FILE, "the spec of a secret file", [
    may "secretManagerIdentifier": FILLED,
    may "additionalMetadata": ANY,
], open: true, also: &[&MARKS]);

const PORT: Shape = Shape::Int(1, 65_535);

object!(SSH_KEY, "the spec of an SSH key", [
    may "port": PORT,
    must "auth": Shape::Object(&SSH_AUTH),
], open: true, also: &[&MARKS]);
object!(SSH_AUTH, "the authentication of an SSH key", [
    must "type": TYPE,
    may "useSshj": BOOL,
    may "useSshClient": BOOL,
], open: true, also: &[&MARKS], typed: typed(&[
    ("SSH", Shape::Object(&SSH)),
    ("Kerberos", Shape::Object(&KERBEROS)),
], &[]));
object!(SSH, "SSH authentication", [must "credentialType": TEXT], also: &[&MARKS], typed: Some(crate::shape::Typed {
    by: "credentialType",
    field: "spec",
    shapes: &[
        ("KeyReference", Shape::Object(&KEY_REFERENCE)),
        ("KeyPath", Shape::Object(&KEY_PATH)),
        ("Password", Shape::Object(&PASSWORD)),
    ],
    names: &[],
}));
object!(KEY_REFERENCE, "a reference to a key", [
    may "userName": TEXT,
    must "key": FILLED,
    may "encryptedPassphrase": TEXT,
], open: true, also: &[&MARKS]);
object!(KEY_PATH, "the path of a key", [
    may "userName": TEXT,
    must "keyPath": FILLED,
    may "encryptedPassphrase": TEXT,
], open: true, also: &[&MARKS]);
object!(PASSWORD, "a password", [may "userName": TEXT, must "password": FILLED], open: true, also: &[&MARKS]);
object!(KERBEROS, "Kerberos authentication", [
    may "principal": TEXT,
    may "realm": TEXT,
    may "tgtGenerationMethod": Shape::OneOf(&["KeyTabFilePath", "Password"]),
    may "spec": ANY,
], open: true, also: &[&MARKS]);

object!(WINRM, "the spec of WinRM credentials", [
    may "port": PORT,
    must "auth": Shape::Object(&WINRM_AUTH),
    may "parameters": ANY,
], open: true, ignored: &[
    ("useSSL", "it belongs into the spec of `auth`"),
], also: &[&MARKS]);
object!(WINRM_AUTH, "the authentication of WinRM credentials", [must "type": TYPE], open: true, also: &[&MARKS],
    typed: typed(&[("NTLM", Shape::Object(&NTLM)), ("Kerberos", Shape::Object(&WINRM_KERBEROS))], &[]));
object!(NTLM, "NTLM authentication", [
    may "domain": TEXT,
    must "username": FILLED,
    may "password": TEXT,
    may "useSSL": BOOL,
    may "skipCertChecks": BOOL,
    may "useNoProfile": BOOL,
], open: true, also: &[&MARKS]);
object!(WINRM_KERBEROS, "Kerberos authentication", [
    may "useSSL": BOOL,
    may "skipCertChecks": BOOL,
    may "useNoProfile": BOOL,
], open: true, also: &[&KERBEROS, &MARKS]);
