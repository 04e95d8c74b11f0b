//! What refers to an image: signatures and attestations, listed by the registry or, where it has no such list, under a tag.

use http::header::LINK;

use crate::{
    Digest, Location,
    document::{DOCUMENT_LIMIT, Descriptor, Document},
    registry::{
        Registry,
        error::{Failure, RegistryError},
        exchange::{Answer, Question},
        route::{self, URL_LIMIT},
    },
};

/// How many pages of a list are read.
pub const PAGES: usize = 8;
/// How many entries of a list are read. An image has a handful.
const ENTRIES: usize = 1000;
/// The one form that lists have.
const ACCEPT: &str = "application/vnd.oci.image.index.v1+json";

impl Registry {
    /// What refers to this digest, of one type where one is given. The list is the registry's word: what is in it has to be verified, and what
    /// is not may still exist.
    pub async fn referrers(
        &self,
        location: &Location,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Vec<Descriptor>, RegistryError> {
        let listed = match self.listed(location, digest, artifact_type).await? {
            Some(listed) => listed,
            None => self.tagged(location, digest).await?,
        };
        // Registries need not filter, whatever they were asked; those that did, say so in OCI-Filters-Applied. What they say changes nothing
        // here: what was filtered passes a second time.
        let is_wanted =
            |entry: &Descriptor| artifact_type.is_none_or(|wanted| entry.artifact_type.as_deref() == Some(wanted));
        Ok(listed.into_iter().filter(is_wanted).collect())
    }

    /// The registry's own list; none where it keeps no lists.
    async fn listed(
        &self,
        location: &Location,
        digest: &Digest,
        artifact_type: Option<&str>,
    ) -> Result<Option<Vec<Descriptor>>, RegistryError> {
        let repository = location.repository();
        let filter = artifact_type
            .map(|wanted| format!("?artifactType={}", windlass_systems::escape::segment(wanted)))
            .unwrap_or_default();
        let mut question = Question {
            location,
            what: format!("the referrers of {digest} in {repository}"),
            path: format!("/v2/{repository}/referrers/{digest}{filter}"),
            accept: ACCEPT,
            from: 0,
        };
        let mut entries = Vec::new();
        for page in 0..PAGES {
            let answer = self.ask(&question).await?;
            // Those that never heard of such lists take the path for something malformed.
            if page == 0 && matches!(answer.status().as_u16(), 400 | 404 | 405 | 406 | 501) {
                return Ok(None);
            }
            let answer = self.success(answer).await?;
            let asked = answer.asked.clone();
            let next = match next_link(&answer) {
                Some(link) => Some(route::page(&answer.hop, link).map_err(|refusal| asked.failed(refusal))?.path),
                None => None,
            };
            let content_type = answer.header(http::header::CONTENT_TYPE).map(str::to_owned);
            let bytes = self.read(answer, DOCUMENT_LIMIT).await?;
            let document = Document::read_as(content_type.as_deref(), &bytes).map_err(|why| asked.failed(why))?;
            let Document::Index(index) = document else {
                return Err(asked.failed(Failure::Garbled("the list of referrers is no index")));
            };
            entries.extend(index.manifests);
            if entries.len() > ENTRIES {
                return Err(asked.failed(Failure::Garbled("more refers to it than is read")));
            }
            match next {
                Some(path) => question.path = path,
                None => return Ok(Some(entries)),
            }
        }
        let asked = super::Asked { registry: location.registry().to_owned(), what: question.what, at: None };
        Err(asked.failed(Failure::Garbled("the list of referrers has more pages than are read")))
    }

    /// The list that signers keep under a tag where the registry keeps none.
    async fn tagged(&self, location: &Location, digest: &Digest) -> Result<Vec<Descriptor>, RegistryError> {
        let tag = format!("sha256-{}", digest.hex());
        match self.manifest_by_tag(location, &tag).await? {
            None => Ok(Vec::new()),
            Some(fetched) => match fetched.document {
                Document::Index(index) if index.manifests.len() <= ENTRIES => Ok(index.manifests),
                Document::Index(_) | Document::Manifest(_) => {
                    let what = format!("the tag {tag} of {}", location.repository());
                    let asked = super::Asked { registry: location.registry().to_owned(), what, at: None };
                    Err(asked.failed(Failure::Garbled("it is no list of referrers that can be read")))
                }
            },
        }
    }
}

/// The address of the next page.
fn next_link(answer: &Answer) -> Option<&str> {
    let header = answer.header(LINK).filter(|header| header.len() <= URL_LIMIT)?;
    header.split(',').find_map(|link| {
        let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
        let is_next = |parameter: &str| matches!(parameter.trim(), r#"rel="next""# | "rel=next");
        parameters.split(';').any(is_next).then_some(target)
    })
}
