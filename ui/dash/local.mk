# ui/dash: the dashboard and its widgets.
