# docs/ as a site that can be searched.

##@ Documentation

SITE_TOOLS := dist/site-tools

# From the registry that pip is set up for, as pinned there, with their digests.
$(SITE_TOOLS): hack/site/requirements.txt
	@rm -rf $@ && python3 -m venv $@ || { echo "make site needs python3 with venv (Debian: apt-get install python3-venv)"; exit 1; }
	@$@/bin/pip install --quiet --require-hashes -r $< || { rm -rf $@; exit 1; }
	@touch $@

.PHONY: site
site: $(SITE_TOOLS) ## Write dist/site, the pages of docs/ with a search; a link that leads nowhere fails it (needs python3).
	@NO_MKDOCS_2_WARNING=1 $(SITE_TOOLS)/bin/mkdocs build --strict --clean -f hack/site/mkdocs.yml
	@echo "dist/site: $$(find dist/site -name '*.html' | wc -l) pages. To read: python3 -m http.server -d dist/site --bind 127.0.0.1 8000"
