//! Internal developer portal.

use super::common::MAP;
use super::container::RESOURCES;
use crate::schema::{ANY, BOOL, TEXT, TEXTS, object};
use crate::shape::{Field, Object, Shape};

object!(REPOSITORY, "a step", [
    may "connectorRef": TEXT,
    may "connectorType": TEXT,
    may "harnessCodeRepoType": TEXT,
    may "organization": TEXT,
    may "project": TEXT,
    may "repository": TEXT,
    may "resources": Shape::Object(&RESOURCES),
    may "workspace": TEXT,
]);

bare!(COOKIE_CUTTER, "`CookieCutter`", [
    must "templateType": TEXT,
    must "cookieCutterVariables": MAP,
    may "publicTemplateUrl": TEXT,
    may "pathForTemplate": TEXT,
    may "outputDirectory": TEXT,
    may "verbose": BOOL,
    may "overwriteIfExists": BOOL,
    may "resources": Shape::Object(&RESOURCES),
]);
bare!(CREATE_CATALOG, "`CreateCatalog`", [
    must "fileName": TEXT,
    must "fileContent": TEXT,
    may "filePath": TEXT,
    may "resources": Shape::Object(&RESOURCES),
]);
bare!(CREATE_ORGANIZATION, "`CreateOrganization`", [
    must "orgName": TEXT,
    must "xApiKey": TEXT,
    may "description": TEXT,
    may "tags": TEXTS,
    may "resources": Shape::Object(&RESOURCES),
]);
bare!(CREATE_PROJECT, "`CreateProject`", [
    must "projectName": TEXT,
    must "orgIdentifier": TEXT,
    must "xApiKey": TEXT,
    may "description": TEXT,
    may "tags": TEXTS,
    may "resources": Shape::Object(&RESOURCES),
]);
bare!(CREATE_REPO, "`CreateRepo`" + REPOSITORY, [
    must "repoType": TEXT,
    may "description": TEXT,
    may "defaultBranch": TEXT,
    may "personalAccount": BOOL,
    may "xApiKey": TEXT,
]);
bare!(CREATE_RESOURCE, "`CreateResource`", [
    must "resourceDefinition": TEXT,
    must "xApiKey": TEXT,
    may "resources": Shape::Object(&RESOURCES),
]);
bare!(DIRECT_PUSH, "`DirectPush`" + REPOSITORY, [
    must "codeDirectory": TEXT,
    must "branch": TEXT,
    may "codeOutputDirectory": TEXT,
    may "forcePush": BOOL,
]);
bare!(IDP_ACTION, "`IdpAction`", [must "actionRef": TEXT, may "actionVersion": TEXT, may "inputs": MAP]);
bare!(REGISTER_CATALOG, "`RegisterCatalog`" + REPOSITORY, [
    must "filePath": TEXT,
    may "branch": TEXT,
    may "xApiKey": TEXT,
]);
bare!(UPDATE_CATALOG_PROPERTY, "`UpdateCatalogProperty`", [
    must "type": TEXT,
    may "entityRef": TEXT,
    may "properties": Shape::List(&Shape::Object(&PROPERTY)),
    may "property": TEXT,
    may "entityRefs": Shape::List(&Shape::Object(&ENTITY_REF)),
    may "mode": TEXT,
    may "value": ANY,
    may "xApiKey": TEXT,
    may "resources": Shape::Object(&RESOURCES),
]);

part!(PROPERTY, "an item of `properties`", [must "property": TEXT, must "value": ANY, may "mode": TEXT]);
part!(ENTITY_REF, "an item of `entityRefs`", [must "entityRef": TEXT, may "value": ANY]);
