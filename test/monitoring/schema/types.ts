// Copyright 2026 The memfit authors.
// SPDX-License-Identifier: Apache-2.0

// The type of config/prometheus/dashboard.json, from Grafana's types of a dashboard and of the two panels that it uses.
import type { Dashboard, Panel } from '@grafana/schema';
import type {
  Options as StatOptions,
} from '@grafana/schema/dist/esm/raw/composable/stat/panelcfg/x/StatPanelCfg_types.gen';
import type {
  FieldConfig as SeriesFields, Options as SeriesOptions,
} from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';

// JSON has no enums: Plain replaces an enum with its values.
type Plain<T> = T extends string ? `${T}`
  : T extends number ? T | (`${T}` extends `${infer N extends number}` ? N : never)
  : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;

type Target = {
  datasource: { type: 'prometheus'; uid: '${datasource}' }; expr: string; legendFormat: string; refId: string;
};

type Fields<Custom> = {
  defaults: Omit<Plain<NonNullable<Panel['fieldConfig']>['defaults']>, 'custom'> & { custom?: Custom };
  overrides: [];
};

// Grafana defines options and fields per type of panel.
type Typed<Type extends string, Options, Custom> =
  Omit<Plain<Panel>, 'type' | 'options' | 'fieldConfig' | 'targets'> & {
    type: Type; options?: Partial<Plain<Options>>; fieldConfig: Fields<Custom>; targets: Target[];
  };

export type Ours = Omit<Plain<Dashboard>, 'panels'> & {
  panels: (
    Typed<'stat', StatOptions, never> | Typed<'timeseries', SeriesOptions, Partial<Plain<SeriesFields>>>
  )[];
};
