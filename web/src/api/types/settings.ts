// Keys of node.toml, and changes of them.

/** A key of node.toml. */
export interface Setting {
  key: string;
  /** As TOML; without it the default holds. */
  value?: string;
  line?: number;
  /** It was changed by the API, in place of what the file says. */
  changed_here?: boolean;
  values: string;
  default: string;
  meaning: string;
  takes_effect: 'now' | 'restart';
  /** The API takes it by its key. */
  changeable?: boolean;
}

export interface SettingChange {
  key: string;
  /** Without it the default is in force. */
  in_force?: string;
  /** Without it the file says nothing any more. */
  in_file?: string;
  /** `now`: at once, or where the file was edited with a reload. */
  takes_effect: 'now' | 'restart';
}

export interface ConfigView {
  file: string;
  settings: Setting[];
  changes: SettingChange[];
  /** Why the daemon could not start with what the file says now. */
  mistakes: string[];
  /** That a restart ends. */
  sessions: number;
  /** Why nothing can be changed by the API. */
  fixed?: string;
  /** Keys that were changed by the API, and that the file says otherwise by now. */
  overtaken?: string[];
}

/** What a change of settings did: `in_force` was said before. */
export interface ConfigOutcome {
  dry_run: boolean;
  changes: SettingChange[];
  waiting: SettingChange[];
  /** What else is to be known of it, a sentence each. */
  notices?: string[];
  sessions: number;
}
