//! Keys of objects as names of files. s3s-fs takes a key for a path, and S3 does not: `/a`, `a//b` and `a/../b` are keys
//! like any other (Amazon S3 user guide, "Naming Amazon S3 objects"). Parts of a key that are no names of files get a sign
//! in front before s3s-fs sees them, and lose it in its answers. Keys of plain names stay as they are.

use s3s::dto::*;
use s3s::{S3, S3Request, S3Response, S3Result};
use s3s_fs::FileSystem;

/// What stands in front of a part that is no name of a file, or begins so itself.
const SIGN: char = '%';

/// The files, by keys of S3.
#[derive(Debug)]
pub(super) struct Files(pub(super) FileSystem);

/// A key as s3s-fs takes it. The last part may be the beginning of one (a prefix), or empty (a folder's own object).
pub(super) fn stored(key: &str) -> String {
    let last = key.split('/').count() - 1;
    let parts = key.split('/').enumerate().map(|(number, part)| {
        let unfit = match part {
            "" => number < last,
            "." | ".." => true,
            part => part.starts_with(SIGN),
        };
        match unfit {
            true => format!("{SIGN}{part}"),
            false => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join("/")
}

/// The key that [`stored`] made this of.
fn known(stored: &str) -> String {
    let parts = stored
        .split('/')
        .map(|part| part.strip_prefix(SIGN).unwrap_or(part));
    parts.collect::<Vec<_>>().join("/")
}

fn all_stored(key: &mut Option<String>) {
    if let Some(key) = key {
        *key = stored(key);
    }
}

fn all_known(key: &mut Option<String>) {
    if let Some(key) = key {
        *key = known(key);
    }
}

fn source(source: &mut CopySource) {
    if let CopySource::Bucket { key, .. } | CopySource::AccessPoint { key, .. } = source {
        *key = stored(key).into();
    }
}

fn listed(contents: &mut Option<Vec<Object>>, prefixes: &mut Option<Vec<CommonPrefix>>) {
    for object in contents.iter_mut().flatten() {
        all_known(&mut object.key);
    }
    for common in prefixes.iter_mut().flatten() {
        all_known(&mut common.prefix);
    }
}

#[async_trait::async_trait]
impl S3 for Files {
    async fn create_bucket(
        &self,
        req: S3Request<CreateBucketInput>,
    ) -> S3Result<S3Response<CreateBucketOutput>> {
        self.0.create_bucket(req).await
    }

    async fn delete_bucket(
        &self,
        req: S3Request<DeleteBucketInput>,
    ) -> S3Result<S3Response<DeleteBucketOutput>> {
        self.0.delete_bucket(req).await
    }

    async fn head_bucket(
        &self,
        req: S3Request<HeadBucketInput>,
    ) -> S3Result<S3Response<HeadBucketOutput>> {
        self.0.head_bucket(req).await
    }

    async fn get_bucket_location(
        &self,
        req: S3Request<GetBucketLocationInput>,
    ) -> S3Result<S3Response<GetBucketLocationOutput>> {
        self.0.get_bucket_location(req).await
    }

    async fn list_buckets(
        &self,
        req: S3Request<ListBucketsInput>,
    ) -> S3Result<S3Response<ListBucketsOutput>> {
        self.0.list_buckets(req).await
    }

    async fn put_object(
        &self,
        mut req: S3Request<PutObjectInput>,
    ) -> S3Result<S3Response<PutObjectOutput>> {
        req.input.key = stored(&req.input.key);
        self.0.put_object(req).await
    }

    async fn get_object(
        &self,
        mut req: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        req.input.key = stored(&req.input.key);
        self.0.get_object(req).await
    }

    async fn head_object(
        &self,
        mut req: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        req.input.key = stored(&req.input.key);
        self.0.head_object(req).await
    }

    async fn delete_object(
        &self,
        mut req: S3Request<DeleteObjectInput>,
    ) -> S3Result<S3Response<DeleteObjectOutput>> {
        req.input.key = stored(&req.input.key);
        self.0.delete_object(req).await
    }

    async fn delete_objects(
        &self,
        mut req: S3Request<DeleteObjectsInput>,
    ) -> S3Result<S3Response<DeleteObjectsOutput>> {
        for object in &mut req.input.delete.objects {
            object.key = stored(&object.key);
        }
        let mut answer = self.0.delete_objects(req).await?;
        for deleted in answer.output.deleted.iter_mut().flatten() {
            all_known(&mut deleted.key);
        }
        for error in answer.output.errors.iter_mut().flatten() {
            all_known(&mut error.key);
        }
        Ok(answer)
    }

    async fn copy_object(
        &self,
        mut req: S3Request<CopyObjectInput>,
    ) -> S3Result<S3Response<CopyObjectOutput>> {
        req.input.key = stored(&req.input.key);
        source(&mut req.input.copy_source);
        self.0.copy_object(req).await
    }

    async fn list_objects(
        &self,
        mut req: S3Request<ListObjectsInput>,
    ) -> S3Result<S3Response<ListObjectsOutput>> {
        all_stored(&mut req.input.prefix);
        all_stored(&mut req.input.marker);
        let mut answer = self.0.list_objects(req).await?;
        let output = &mut answer.output;
        listed(&mut output.contents, &mut output.common_prefixes);
        all_known(&mut output.prefix);
        all_known(&mut output.marker);
        all_known(&mut output.next_marker);
        Ok(answer)
    }

    async fn list_objects_v2(
        &self,
        mut req: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        all_stored(&mut req.input.prefix);
        all_stored(&mut req.input.start_after);
        let mut answer = self.0.list_objects_v2(req).await?;
        let output = &mut answer.output;
        listed(&mut output.contents, &mut output.common_prefixes);
        all_known(&mut output.prefix);
        all_known(&mut output.start_after);
        Ok(answer)
    }

    async fn create_multipart_upload(
        &self,
        mut req: S3Request<CreateMultipartUploadInput>,
    ) -> S3Result<S3Response<CreateMultipartUploadOutput>> {
        req.input.key = stored(&req.input.key);
        let mut answer = self.0.create_multipart_upload(req).await?;
        all_known(&mut answer.output.key);
        Ok(answer)
    }

    async fn upload_part(
        &self,
        mut req: S3Request<UploadPartInput>,
    ) -> S3Result<S3Response<UploadPartOutput>> {
        req.input.key = stored(&req.input.key);
        self.0.upload_part(req).await
    }

    async fn upload_part_copy(
        &self,
        mut req: S3Request<UploadPartCopyInput>,
    ) -> S3Result<S3Response<UploadPartCopyOutput>> {
        req.input.key = stored(&req.input.key);
        source(&mut req.input.copy_source);
        self.0.upload_part_copy(req).await
    }

    async fn list_parts(
        &self,
        mut req: S3Request<ListPartsInput>,
    ) -> S3Result<S3Response<ListPartsOutput>> {
        req.input.key = stored(&req.input.key);
        let mut answer = self.0.list_parts(req).await?;
        all_known(&mut answer.output.key);
        Ok(answer)
    }

    async fn complete_multipart_upload(
        &self,
        mut req: S3Request<CompleteMultipartUploadInput>,
    ) -> S3Result<S3Response<CompleteMultipartUploadOutput>> {
        req.input.key = stored(&req.input.key);
        let mut answer = self.0.complete_multipart_upload(req).await?;
        all_known(&mut answer.output.key);
        Ok(answer)
    }

    async fn abort_multipart_upload(
        &self,
        mut req: S3Request<AbortMultipartUploadInput>,
    ) -> S3Result<S3Response<AbortMultipartUploadOutput>> {
        req.input.key = stored(&req.input.key);
        self.0.abort_multipart_upload(req).await
    }
}

#[cfg(test)]
mod tests {
    use super::{known, stored};

    #[test]
    fn every_key_is_a_file_of_its_own_inside_of_the_bucket() {
        for (key, expected) in [
            ("a/b.zip", "a/b.zip"),
            ("/a/b.zip", "%/a/b.zip"),
            ("//a", "%/%/a"),
            ("a//b", "a/%/b"),
            ("a/../../etc", "a/%../%../etc"),
            ("./a", "%./a"),
            ("%/a", "%%/a"),
            ("folder/", "folder/"),
            ("", ""),
        ] {
            assert_eq!(stored(key), expected);
            assert_eq!(known(expected), key);
        }
    }
}
