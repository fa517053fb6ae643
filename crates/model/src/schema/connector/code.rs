//! Connectors of code hosts.

use super::super::{FILLED, MARKS, NOTHING, Object, Shape, TEXT, TYPE, object, typed};
use super::cloud::{COMMON, USER};
use crate::shape::Field;

const EXTENT: Shape = Shape::OneOf(&["Account", "Repo", "Project", "Region"]);

object!(GIT, "the spec of a Git connector", [
    must "url": FILLED,
    may "validationRepo": TEXT,
    may "branchName": TEXT,
    may "connectionType": EXTENT,
    must "type": TYPE,
], open: true, also: &[&COMMON, &MARKS], typed: typed(&[
    ("Http", Shape::Object(&USER)),
    ("Ssh", Shape::Object(&SSH)),
], &[]));
object!(SSH, "an SSH connection", [must "sshKeyRef": FILLED], open: true, also: &[&MARKS]);

object!(HOSTED, "the spec of a Git connector", [
    must "url": FILLED,
    may "validationRepo": TEXT,
    may "validationProject": TEXT,
    may "type": EXTENT,
    must "authentication": Shape::Object(&AUTHENTICATION),
    may "apiAccess": Shape::Object(&API_ACCESS),
], open: true, also: &[&COMMON, &MARKS]);
object!(AUTHENTICATION, "a Git authentication", [must "type": TYPE], open: true, also: &[&MARKS], typed: typed(&[
    ("Http", Shape::Object(&HTTP)),
    ("Ssh", Shape::Object(&SSH)),
], &[]));
object!(HTTP, "an HTTP connection", [must "type": TYPE], open: true, also: &[&MARKS], typed: typed(&[
    ("UsernamePassword", Shape::Object(&USER)),
    ("UsernameToken", Shape::Object(&TOKEN)),
    ("EmailAndApiToken", Shape::Object(&TOKEN)),
    ("AccessToken", Shape::Object(&TOKEN)),
    ("OAuth", Shape::Object(&TOKEN)),
    ("GithubApp", Shape::Object(&APP)),
    ("GitHubApp", Shape::Object(&APP)),
    ("Kerberos", Shape::Object(&KERBEROS)),
    ("Anonymous", Shape::Object(&NOTHING)),
], &[]));
object!(API_ACCESS, "`apiAccess`", [must "type": TYPE], open: true, also: &[&MARKS], typed: typed(&[
    ("Token", Shape::Object(&TOKEN)),
    ("UsernameToken", Shape::Object(&TOKEN)),
    ("EmailAndApiToken", Shape::Object(&TOKEN)),
    ("AccessToken", Shape::Object(&TOKEN)),
    ("OAuth", Shape::Object(&TOKEN)),
    ("GithubApp", Shape::Object(&APP)),
    ("GitHubApp", Shape::Object(&APP)),
], &[]));
object!(TOKEN, "a token", [
    may "username": TEXT,
    may "usernameRef": TEXT,
    may "email": TEXT,
    may "emailRef": TEXT,
    may "tokenRef": TEXT,
    may "refreshTokenRef": TEXT,
    may "apiUrl": TEXT,
], open: true, also: &[&MARKS]);
object!(APP, "a GitHub app", [
    may "installationId": TEXT,
    may "installationIdRef": TEXT,
    may "applicationId": TEXT,
    may "applicationIdRef": TEXT,
    must "privateKeyRef": FILLED,
], open: true, also: &[&MARKS]);
object!(KERBEROS, "Kerberos", [may "kerberosKeyRef": TEXT], open: true, also: &[&MARKS]);

object!(CODE_COMMIT, "the spec of a CodeCommit connector", [
    must "url": FILLED,
    may "type": EXTENT,
    must "authentication": Shape::Object(&AWS_AUTHENTICATION),
], open: true, also: &[&COMMON, &MARKS]);
object!(AWS_AUTHENTICATION, "a CodeCommit authentication", [must "type": TYPE], open: true, also: &[&MARKS],
    typed: typed(&[("HTTPS", Shape::Object(&AWS_HTTPS))], &[]));
object!(AWS_HTTPS, "an HTTPS connection", [must "type": TYPE], open: true, also: &[&MARKS], typed: typed(&[
    ("AWSCredentials", Shape::Object(&AWS_KEYS)),
], &[]));
object!(AWS_KEYS, "AWS keys", [
    may "accessKey": TEXT,
    may "accessKeyRef": TEXT,
    must "secretKeyRef": FILLED,
], open: true, also: &[&MARKS]);
