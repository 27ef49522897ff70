//! Which folders a view has, and which stand at or above each: the way from a file that speaks for a folder to what is below.
//!
//! In: files. Out: every folder that holds one, and for each folder above them what stands below it.
//!
//! **Invariant:** both follow from the paths alone, so a file that changes moves nothing here.

use crate::data::{File, View, folders_up};
use crate::stage::Time;
use differential_dataflow::VecCollection;
use differential_dataflow::operators::ThresholdTotal;

/// A folder of a view.
pub(super) type Folder = (View, Box<[u8]>);

/// The folders of all views.
pub(super) struct Folders<'s> {
    /// Those that hold a file.
    pub(super) own: VecCollection<'s, Time, Folder>,
    /// Each of them behind every folder at or above it, the root among these.
    pub(super) above: VecCollection<'s, Time, (Folder, Box<[u8]>)>,
}

impl<'s> Folders<'s> {
    /// Finds the folders of files.
    pub(super) fn of(files: VecCollection<'s, Time, File>) -> Self {
        let own = files.map(|file| (file.view, Box::<[u8]>::from(file.path.folder()))).distinct_total();
        let above = own.clone().flat_map(|(view, folder)| {
            let depths: Vec<usize> = folders_up(&folder).map(<[u8]>::len).collect();
            depths.into_iter().map(move |length| ((view, Box::from(&folder[..length])), folder.clone()))
        });
        Self { own, above }
    }
}
