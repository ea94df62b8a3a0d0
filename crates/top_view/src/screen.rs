//! The terminal view: what it shows, and what keys change of it.

use super::columns::{Column, LUNS, SESSIONS, Tone, fitting, session_name};
use super::frame::{Frame, LunRow, Order, SessionRow, SortKey};
use super::text::{count, mebibytes, percent, time};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Sparkline};
use std::collections::VecDeque;
use std::time::Duration;
use units::text::counted;

/// Samples that the curves keep.
const HISTORY: usize = 240;

/// Below this width or height the curves give their place to the tables.
const CURVES_WIDTH_MIN: u16 = 60;
const CURVES_HEIGHT_MIN: u16 = 18;
/// Lines of the curves, with their titles.
const CURVES_HEIGHT: u16 = 3;

/// Fewer lines than this are for one table only.
const BOTH_HEIGHT_MIN: u16 = 8;

const INTERVAL_MIN: Duration = Duration::from_millis(250);
const INTERVAL_MAX: Duration = Duration::from_secs(60);

/// Which table the keys mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pane {
    Luns,
    Sessions,
}

/// What is to be done after a key.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// The view is another one now.
    Draw,
    /// Whoever reads it has enough.
    Quit,
    /// Sample at another interval.
    Interval(Duration),
}

/// All that the view remembers.
pub struct Screen {
    colour: bool,
    frame: Option<Frame>,
    /// Operations, bytes, and the 99th percentile in microseconds.
    history: VecDeque<[u64; 3]>,
    pane: Pane,
    luns: Order,
    sessions: Order,
    /// The first row of each table that is shown.
    top: [usize; 2],
    paused: bool,
    interval: Duration,
    /// Why there are no new figures.
    trouble: Option<String>,
}

/// Parts of a line, of which each is there as a whole or not at all.
struct Parts {
    left: usize,
    spans: Vec<Span<'static>>,
}

impl Parts {
    fn new(width: usize) -> Self {
        Self {
            left: width,
            spans: Vec::new(),
        }
    }

    /// Takes the part where it fits, and nothing more where it does not: a blank at the line's end
    /// may be cut.
    fn push(&mut self, part: Vec<Span<'static>>) {
        let width: usize = part.iter().map(Span::width).sum();
        if width > self.left + 1 {
            self.left = 0;
            return;
        }
        self.left = self.left.saturating_sub(width);
        self.spans.extend(part);
    }

    fn line(self) -> Line<'static> {
        Line::from(self.spans)
    }
}

impl Screen {
    /// A view that has seen nothing yet.
    #[must_use]
    pub fn new(key: SortKey, interval: Duration, colour: bool) -> Self {
        let order = Order {
            key,
            reverse: false,
        };
        Self {
            colour,
            frame: None,
            history: VecDeque::new(),
            pane: Pane::Luns,
            luns: order,
            sessions: order,
            top: [0; 2],
            paused: false,
            interval,
            trouble: None,
        }
    }

    /// New figures. While it is paused, only the curves go on.
    pub fn show(&mut self, frame: Frame) {
        self.trouble = None;
        let total = &frame.total;
        let point = [
            rounded(total.iops),
            rounded(total.bytes_per_second),
            total.latency_us.p99.unwrap_or(0),
        ];
        self.history.push_front(point);
        self.history.truncate(HISTORY);
        if !self.paused || self.frame.is_none() {
            self.frame = Some(frame);
            self.sort();
        }
    }

    /// There are no new figures.
    pub fn trouble(&mut self, why: String) {
        self.trouble = Some(why);
    }

    /// The daemon answers, and is another one than before: its figures began anew.
    pub fn restarted(&mut self) {
        self.trouble = Some("the daemon was started anew, measuring".to_owned());
    }

    fn sort(&mut self) {
        if let Some(frame) = &mut self.frame {
            frame.sort(self.luns, self.sessions);
        }
    }

    /// Does what a key is for.
    pub fn key(&mut self, key: KeyEvent) -> Next {
        if key.kind == KeyEventKind::Release {
            return Next::Draw;
        }
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            let quits = [KeyCode::Char('c'), KeyCode::Char('d')].contains(&key.code);
            return if quits { Next::Quit } else { Next::Draw };
        }
        #[expect(
            clippy::wildcard_enum_match_arm,
            reason = "most keys mean nothing here"
        )]
        match key.code {
            KeyCode::Char('q' | 'Q') | KeyCode::Esc => return Next::Quit,
            KeyCode::Tab | KeyCode::BackTab => {
                self.pane = match self.pane {
                    Pane::Luns => Pane::Sessions,
                    Pane::Sessions => Pane::Luns,
                }
            }
            KeyCode::Left | KeyCode::Char('<') => {
                self.reorder(|order| order.key = order.key.step(-1));
            }
            KeyCode::Right | KeyCode::Char('>') => {
                self.reorder(|order| order.key = order.key.step(1));
            }
            KeyCode::Char('r') => self.reorder(|order| order.reverse = !order.reverse),
            KeyCode::Char(' ') => self.paused = !self.paused,
            KeyCode::Char('+') => return self.set_interval(self.interval * 2),
            KeyCode::Char('-') => return self.set_interval(self.interval / 2),
            KeyCode::Up => self.scroll(-1),
            KeyCode::Down => self.scroll(1),
            KeyCode::PageUp => self.scroll(-10),
            KeyCode::PageDown => self.scroll(10),
            KeyCode::Home => self.scroll(isize::MIN),
            KeyCode::End => self.scroll(isize::MAX),
            _ => {}
        }
        Next::Draw
    }

    fn reorder(&mut self, change: impl FnOnce(&mut Order)) {
        match self.pane {
            Pane::Luns => change(&mut self.luns),
            Pane::Sessions => change(&mut self.sessions),
        }
        self.sort();
    }

    fn set_interval(&mut self, interval: Duration) -> Next {
        self.interval = interval.clamp(INTERVAL_MIN, INTERVAL_MAX);
        Next::Interval(self.interval)
    }

    fn scroll(&mut self, by: isize) {
        let rows = self.frame.as_ref().map_or(0, |frame| match self.pane {
            Pane::Luns => frame.luns.len(),
            Pane::Sessions => frame.sessions.len(),
        });
        let top = &mut self.top[self.pane as usize];
        *top = top.saturating_add_signed(by).min(rows.saturating_sub(1));
    }

    fn style(&self, tone: Tone) -> Style {
        let style = Style::new();
        let coloured = |colour| if self.colour { style.fg(colour) } else { style };
        match tone {
            Tone::Plain => style,
            Tone::Quiet => style.add_modifier(Modifier::DIM),
            Tone::Good => coloured(Color::Green),
            Tone::Warn => coloured(Color::Yellow),
            Tone::Bad => coloured(Color::Red).add_modifier(Modifier::BOLD),
        }
    }

    fn accent(&self) -> Style {
        let style = Style::new().add_modifier(Modifier::BOLD);
        if self.colour {
            style.fg(Color::Cyan)
        } else {
            style
        }
    }

    /// Draws it as it is now.
    pub fn draw(&self, canvas: &mut ratatui::Frame<'_>) {
        let area = canvas.area();
        let curves = area.width >= CURVES_WIDTH_MIN && area.height >= CURVES_HEIGHT_MIN;
        let parts = Layout::vertical([
            Constraint::Length(1),
            Constraint::Length(if curves { CURVES_HEIGHT + 2 } else { 1 }),
            Constraint::Fill(1),
            Constraint::Length(1),
        ]);
        let [head, summary, tables, foot] = parts.areas(area);
        self.draw_head(canvas, head);
        self.draw_foot(canvas, foot);
        let Some(frame) = &self.frame else {
            let text = "  measuring the first interval ...";
            canvas.render_widget(Paragraph::new(text), summary);
            return;
        };
        if curves {
            self.draw_curves(canvas, summary, frame);
        } else {
            self.draw_totals(canvas, summary, frame);
        }
        self.draw_tables(canvas, tables, frame);
    }

    fn draw_head(&self, canvas: &mut ratatui::Frame<'_>, area: Rect) {
        let (state, tone) = match (&self.trouble, self.paused) {
            (Some(why), _) => (format!(" {why} "), Tone::Bad),
            (None, true) => (" paused ".to_owned(), Tone::Warn),
            (None, false) => (
                format!(" every {:.2} s ", self.interval.as_secs_f64()),
                Tone::Good,
            ),
        };
        let most = usize::from(area.width);
        let state = clipped(&state, most);
        let width = u16::try_from(state.chars().count()).unwrap_or(area.width);
        let left = self.head(most.saturating_sub(usize::from(width)));
        let [left_area, right_area] =
            Layout::horizontal([Constraint::Fill(1), Constraint::Length(width)]).areas(area);
        canvas.render_widget(left, left_area);
        canvas.render_widget(Span::styled(state, self.style(tone)), right_area);
    }

    /// What of the head fits: the name, the node and the cores go before how many there are, and
    /// since when.
    fn head(&self, width: usize) -> Line<'static> {
        let mut left = Parts::new(width);
        left.push(vec![Span::styled(" causeway top ", self.accent())]);
        let Some(frame) = &self.frame else {
            return left.line();
        };
        left.push(vec![Span::raw(format!(" {} ", frame.node))]);
        let quiet = |text: String| Span::styled(text, self.style(Tone::Quiet));
        for core in &frame.cores {
            let tone = if core.busy > 0.9 {
                Tone::Warn
            } else {
                Tone::Plain
            };
            let busy = Span::styled(format!(" {} ", percent(core.busy)), self.style(tone));
            left.push(vec![quiet(format!(" core {}", core.core)), busy]);
        }
        let count = |rows: usize, word| counted(rows as u64, word);
        let luns = count(frame.luns.len(), "LUN");
        let sessions = count(frame.sessions.len(), "session");
        left.push(vec![quiet(format!(" {luns}, {sessions} "))]);
        // Without the fraction of the second.
        let since = frame.started.split('.').next().unwrap_or_default();
        left.push(vec![quiet(format!(" up since {since}Z "))]);
        left.line()
    }

    fn draw_foot(&self, canvas: &mut ratatui::Frame<'_>, area: Rect) {
        let keys = [
            ("q", "quit"),
            ("Tab", "table"),
            ("←→", "sort"),
            ("r", "reverse"),
            ("↑↓", "scroll"),
            ("Space", "pause"),
            ("+-", "interval"),
        ];
        let mut line = Parts::new(usize::from(area.width));
        for (key, does) in keys {
            line.push(vec![
                Span::styled(format!(" {key}"), self.accent()),
                Span::styled(format!(" {does} "), self.style(Tone::Quiet)),
            ]);
        }
        canvas.render_widget(line.line(), area);
    }

    fn totals(&self, frame: &Frame) -> [(&'static str, String); 3] {
        let total = &frame.total;
        [
            ("IOPS", count(total.iops)),
            ("MiB/s", mebibytes(total.bytes_per_second)),
            ("p99", time(total.latency_us.p99)),
        ]
    }

    fn draw_totals(&self, canvas: &mut ratatui::Frame<'_>, area: Rect, frame: &Frame) {
        let mut line = Vec::new();
        for (name, value) in self.totals(frame) {
            line.push(Span::styled(format!(" {name} "), self.style(Tone::Quiet)));
            line.push(Span::styled(format!("{value}  "), self.accent()));
        }
        canvas.render_widget(Line::from(line), area);
    }

    /// Three curves side by side, the newest figure at the right.
    fn draw_curves(&self, canvas: &mut ratatui::Frame<'_>, area: Rect, frame: &Frame) {
        let thirds = Layout::horizontal([Constraint::Fill(1); 3]).spacing(2);
        let inner = Rect {
            x: area.x + 1,
            y: area.y + 1,
            width: area.width.saturating_sub(2),
            height: CURVES_HEIGHT,
        };
        let areas: [Rect; 3] = thirds.areas(inner);
        for ((at, area), (name, value)) in areas.into_iter().enumerate().zip(self.totals(frame)) {
            let [title, curve] =
                Layout::vertical([Constraint::Length(1), Constraint::Fill(1)]).areas(area);
            let title_line = Line::from(vec![
                Span::styled(format!("{name} "), self.style(Tone::Quiet)),
                Span::styled(value, self.accent()),
            ]);
            canvas.render_widget(title_line, title);
            let room = usize::from(curve.width).min(self.history.len());
            let points: Vec<u64> = self.history.iter().take(room).map(|all| all[at]).collect();
            // The newest stands at the right edge.
            let missing = usize::from(curve.width) - room;
            let data = std::iter::repeat_n(0, missing).chain(points.into_iter().rev());
            let line = Sparkline::default()
                .data(data.collect::<Vec<u64>>())
                .style(self.accent().remove_modifier(Modifier::BOLD));
            canvas.render_widget(line, curve);
        }
    }

    fn draw_tables(&self, canvas: &mut ratatui::Frame<'_>, area: Rect, frame: &Frame) {
        let lines = |rows: usize| u16::try_from(rows + 1).unwrap_or(u16::MAX);
        let (luns, sessions) = (lines(frame.luns.len()), lines(frame.sessions.len()));
        if area.height < BOTH_HEIGHT_MIN {
            match self.pane {
                Pane::Luns => self.draw_luns(canvas, area, frame),
                Pane::Sessions => self.draw_sessions(canvas, area, frame),
            }
            return;
        }
        // Each has what it needs where both fit; else the one that the keys mean has two thirds at
        // least.
        let room = area.height - 1;
        let third = room / 3;
        let upper = match self.pane {
            Pane::Luns => luns.min(room - sessions.min(third)),
            Pane::Sessions => luns.min(room.saturating_sub(sessions).max(third)),
        };
        let parts = Layout::vertical([
            Constraint::Length(upper),
            Constraint::Length(1),
            Constraint::Fill(1),
        ]);
        let [upper, _, lower] = parts.areas(area);
        self.draw_luns(canvas, upper, frame);
        self.draw_sessions(canvas, lower, frame);
    }

    fn draw_luns(&self, canvas: &mut ratatui::Frame<'_>, area: Rect, frame: &Frame) {
        let name = |row: &LunRow| {
            if row.online {
                (row.name.clone(), Tone::Plain)
            } else {
                (format!("{} (offline)", row.name), Tone::Bad)
            }
        };
        self.draw_table(canvas, area, Pane::Luns, "LUN", LUNS, &frame.luns, name);
    }

    fn draw_sessions(&self, canvas: &mut ratatui::Frame<'_>, area: Rect, frame: &Frame) {
        let name = |row: &SessionRow| (session_name(row), Tone::Plain);
        let (pane, rows) = (Pane::Sessions, &frame.sessions);
        self.draw_table(canvas, area, pane, "SESSION", SESSIONS, rows, name);
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "a table is a place, columns and rows"
    )]
    fn draw_table<R>(
        &self,
        canvas: &mut ratatui::Frame<'_>,
        area: Rect,
        pane: Pane,
        title: &str,
        columns: &[Column<R>],
        rows: &[R],
        name: impl Fn(&R) -> (String, Tone),
    ) {
        let order = match pane {
            Pane::Luns => self.luns,
            Pane::Sessions => self.sessions,
        };
        let mark = |key: Option<SortKey>| match (key == Some(order.key), order.reverse) {
            (false, _) => "",
            (true, false) => "▼",
            (true, true) => "▲",
        };
        let width = usize::from(area.width).saturating_sub(1);
        let (name_width, shown) = fitting(columns, width);
        let head_style = if pane == self.pane {
            self.accent().add_modifier(Modifier::REVERSED)
        } else {
            self.accent()
        };
        let first = format!("{title}{}", mark(Some(SortKey::Name)));
        let mut head = format!(" {}", left(&first, name_width));
        for column in &shown {
            let title = format!("{}{}", mark(column.key), column.title);
            head.push_str(&format!(" {}", aligned(column, &title)));
        }
        let mut lines = vec![Line::styled(head, head_style)];
        let room = usize::from(area.height).saturating_sub(1);
        let top = self.top[pane as usize].min(rows.len().saturating_sub(room));
        for row in rows.iter().skip(top).take(room) {
            let (text, tone) = name(row);
            let text = format!(" {}", left(&text, name_width));
            let mut line = vec![Span::styled(text, self.style(tone))];
            for column in &shown {
                let (text, tone) = (column.cell)(row);
                let text = format!(" {}", aligned(column, &text));
                line.push(Span::styled(text, self.style(tone)));
            }
            lines.push(Line::from(line));
        }
        if rows.is_empty() && room > 0 {
            lines.push(Line::styled(" none", self.style(Tone::Quiet)));
        }
        let mut table = Paragraph::new(lines);
        if self.trouble.is_some() {
            // Old figures are shown as old.
            table = table.style(Style::new().add_modifier(Modifier::DIM));
        }
        canvas.render_widget(table, area);
    }
}

/// At most `width` characters; what is cut off is marked.
fn clipped(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut out: String = text.chars().take(width.saturating_sub(1)).collect();
    if width > 0 {
        out.push('…');
    }
    out
}

fn left(text: &str, width: usize) -> String {
    format!("{:<width$}", clipped(text, width))
}

/// Text to the left, figures to the right.
fn aligned<R>(column: &Column<R>, text: &str) -> String {
    let width = column.width;
    if column.is_text() {
        return left(text, width);
    }
    format!("{:>width$}", clipped(text, width))
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rates are not negative, and a curve needs no more than a few digits"
)]
fn rounded(value: f64) -> u64 {
    value.round() as u64
}
