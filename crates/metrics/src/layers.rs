//! What metrics report of layers that a LUN has because someone asked for them: the storage fields
//! declare these families.

use super::family::{Text, seconds};
use super::luns::Luns;
use manifest::objects::{Figure, Objects, layer_metrics};

pub(super) fn layers(out: &mut Text, luns: &Luns<'_>, objects: &Objects) {
    let mut family = "";
    for metric in layer_metrics() {
        if metric.name != family {
            out.begin(metric.name, metric.kind, metric.help);
            family = metric.name;
        }
        for (lun, facts) in luns {
            let stored = objects.luns.get(*lun).map(|lun| lun.storage);
            let labels: Vec<(&str, &str)> = [("lun", *lun)]
                .into_iter()
                .chain(metric.labels.iter().copied())
                .collect();
            match (metric.figure)(&stored.unwrap_or_default(), &facts.layers) {
                Some(Figure::Number(figure)) => out.line(metric.name, &labels, figure),
                Some(Figure::Micros(us)) => out.line(metric.name, &labels, seconds(us)),
                None => {}
            }
        }
    }
}
